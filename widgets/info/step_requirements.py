"""The memory and time a step needs on a machine, independent of the budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from planner.graph import Graph
from planner.machine import Machine
from planner.memory import parse_budget
from planner.plan import SwapPlan
from planner.swap import Seconds, least_budget, make_problem, peak_of, resident_plan, working_sets
from planner.units import bytes_label, format_apart


@dataclass(frozen=True, eq=False)
class Feasibility:
    """The needs of a step on a machine.

    Args:
        graph, machine: the step and the machine.
        seconds: `[ops]`, seconds that each op runs.
        peak_bytes: peak of the step with nothing swapped, packed for this machine.
        least_bytes: a budget for which there is a plan; plans for less are found only by `with_exact_least`.
        least_op: the op with the largest working set; -1 in a step without ops.
        captured: plan of the captured order with nothing swapped, within `peak_bytes`.
        exact: whether `least_bytes` is the least budget for which any plan was found.
    """

    graph: Graph
    machine: Machine
    seconds: Seconds
    peak_bytes: int
    least_bytes: int
    least_op: int
    captured: SwapPlan
    exact: bool = False

    @cached_property
    def ideal_seconds(self) -> float:
        """Length of the step with infinite memory."""
        return float(self.seconds.sum())

    def parse(self, budget: str | int) -> int:
        """A budget in bytes.

        Args:
            budget: bytes, or text such as `"8GiB"` or `"50%"` of what the arena takes with nothing swapped.

        Raises:
            StowageError: it is not an amount of memory.
        """
        return parse_budget(budget, self.peak_bytes, outside_bytes=self.graph.outside_bytes)

    def verdict(self, budget: int) -> str:
        """`"fits"`, `"swap"` or `"impossible"`."""
        if budget >= self.peak_bytes:
            return "fits"
        return "swap" if budget >= self.least_bytes else "impossible"

    def why_impossible(self, budget: int) -> str:
        """Explain why there is no plan for a budget below the least."""
        small, least = bytes_label(budget), bytes_label(self.least_bytes, round_up=True)
        if small == least:  # else they are written as everywhere
            small, least = format_apart(budget, self.least_bytes)
        op = self.graph.ops[self.least_op]
        beside = ", with what lies outside of the arena" if self.graph.outside_bytes else ""
        return (
            f"a budget of {small} is too small: {op.name} ({op.target}) alone works on about as much as {least}"
            f"{beside}; allow at least {self.least_bytes} bytes"
        )

    def with_exact_least(self) -> Feasibility:
        """A copy with the least budget for which any plan is found; slow for a large graph."""
        problem, _ = make_problem(self.graph, self.machine, self.peak_bytes, None, self.seconds)
        least = max(1, min(least_budget(problem, self.peak_bytes), self.least_bytes))
        return replace(self, least_bytes=least, exact=True)


def assess_feasibility(graph: Graph, machine: Machine, seconds: Seconds | None = None) -> Feasibility:
    """Compute the memory and time a step needs on a machine.

    Args:
        graph, machine: the step and the machine.
        seconds: `[ops]`, seconds that each op runs; by default the machine's roofline.

    Raises:
        StowageError: the machine's figures or the op times are invalid.
    """
    from planner.machine import op_seconds

    seconds = op_seconds(graph, machine) if seconds is None else seconds
    peak = max(1, peak_of(graph, machine.device.alignment))
    problem, _ = make_problem(graph, machine, peak, None, seconds)
    sets = working_sets(problem)
    captured = resident_plan(problem)
    if captured is None:
        raise AssertionError(f"{graph.name} does not fit into its own peak of {peak} bytes")
    return Feasibility(
        graph, machine, problem.seconds, peak, max(1, min(int(sets.max(initial=1)) + graph.outside_bytes, peak)),
        int(sets.argmax()) if len(sets) else -1, captured,
    )  # fmt: skip
