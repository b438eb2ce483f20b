"""A step on a machine: everything about the two that no budget changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from planner.graph import Graph
from planner.machine.types import Machine
from planner.plan import SwapPlan
from planner.swap.baselines.resident import resident_plan
from planner.swap.problem.problem import Seconds
from planner.swap.schedule.feasibility import least_budget, working_sets
from planner.swap.search.inputs import peak_of, problem_of
from planner.units import format_apart


@dataclass(frozen=True, eq=False)
class Ground:
    """A step on a machine.

    Args:
        graph, machine: which.
        seconds: `[ops]`, how long each op runs.
        peak_bytes: the step's own peak, packed for this machine.
        least_bytes: there is a plan for this, and for less only what `with_exact_least` finds.
        least_op: the op that works on most memory by itself; -1 in a step without ops.
        captured: the step as captured with nothing swapped, as a plan within `peak_bytes`.
        exact: whether `least_bytes` is the least that any plan was found for.
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
        """The step with infinite memory."""
        return float(self.seconds.sum())

    def verdict(self, budget: int) -> str:
        """`"fits"`, `"swap"` or `"impossible"`."""
        if budget >= self.peak_bytes:
            return "fits"
        return "swap" if budget >= self.least_bytes else "impossible"

    def why_impossible(self, budget: int) -> str:
        """What to say of a budget below the least."""
        small, least = format_apart(budget, self.least_bytes)
        op = self.graph.ops[self.least_op]
        return (
            f"a budget of {small} is too small: {op.name} ({op.target}) alone works on about as much as {least}; "
            f"allow at least {self.least_bytes} bytes"
        )

    def with_exact_least(self) -> Ground:
        """The same with the least budget that any plan is found for, which takes a while in a large graph."""
        problem, _ = problem_of(self.graph, self.machine, self.peak_bytes, None, self.seconds)
        least = max(1, min(least_budget(problem, self.peak_bytes), self.least_bytes))
        return replace(self, least_bytes=least, exact=True)


def lay_ground(graph: Graph, machine: Machine, seconds: Seconds | None = None) -> Ground:
    """Work out what a step needs on a machine.

    Args:
        graph, machine: which.
        seconds: `[ops]`, how long each op runs; without it, the machine's roofline.

    Raises:
        StowageError: the machine's figures or the op times are none.
    """
    from planner.machine import op_seconds

    seconds = op_seconds(graph, machine) if seconds is None else seconds
    peak = max(1, peak_of(graph, machine.device.alignment))
    problem, _ = problem_of(graph, machine, peak, None, seconds)
    sets = working_sets(problem)
    captured = resident_plan(problem)
    if captured is None:
        raise AssertionError(f"{graph.name} does not fit into its own peak of {peak} bytes")
    return Ground(
        graph, machine, problem.seconds, peak, max(1, min(int(sets.max(initial=1)), peak)),
        int(sets.argmax()) if len(sets) else -1, captured,
    )  # fmt: skip
