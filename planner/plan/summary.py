"""The key figures of a plan, and whether the validator accepts it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planner.graph import Graph
from planner.plan.schema.swap_plan import SwapPlan
from planner.plan.validator import validate

#: Of a sum of a million op times, as a share: what adding them in another order may change.
_ROUNDING = 1e-10


def percent_of_ideal(ideal: float, seconds: float) -> float:
    """Speed of a step relative to infinite memory, in percent; at most 100, as sums in other orders round otherwise."""
    return min(100.0, 100 * ideal / seconds) if seconds else 100.0


def gap_percent(bound: float, seconds: float) -> float:
    """How much slower a step is than a lower bound, in percent; 0 where they differ by the rounding of sums alone."""
    share = seconds / bound - 1 if bound else 0.0
    return 100 * share if share > _ROUNDING else 0.0


def predicted_op_seconds(plan: SwapPlan) -> NDArray[np.float64]:
    """`[ops]`, the seconds that each op runs as the plan predicts, where it runs first."""
    _, first = np.unique(plan.order, return_index=True)
    start, stop = plan.predicted.compute[first].T
    seconds: NDArray[np.float64] = np.maximum(stop - start, 0.0)
    return seconds


def recompute_seconds(plan: SwapPlan) -> float:
    """Seconds of a plan's predicted step in which ops run that ran before in the same step."""
    if len(plan.order) == len(set(plan.order)):
        return 0.0
    ran: set[int] = set()
    spent = 0.0
    for op, (start, stop) in zip(plan.order, plan.predicted.compute.tolist(), strict=True):
        spent += stop - start if op in ran else 0.0
        ran.add(op)
    return spent


def bytes_copied(graph: Graph, plan: SwapPlan) -> tuple[int, int]:
    """Bytes copied to the device and to the host in each step."""
    storages = graph.storages
    into, out = (
        sum(storages[copy.storage].bytes for copy in plan.swap_ins),
        sum(storages[copy.storage].bytes for copy in plan.swap_outs),
    )
    return into, out


@dataclass(frozen=True, eq=False)
class PlanSummary:
    """The key figures of a plan.

    Args:
        graph, plan: a plan and its graph.
        ideal_seconds: length of the step with infinite memory.
        bound_seconds: lower bound on the length of any step within the budget; None if unknown.
        known: the summary of the same plan with another budget, whose answer of the validator is used again; None for
            none.
    """

    graph: Graph
    plan: SwapPlan
    ideal_seconds: float
    bound_seconds: float | None = None
    known: PlanSummary | None = None

    @cached_property
    def problems(self) -> tuple[str, ...]:
        """Why the validator refuses the plan; empty if it accepts it. The validator runs when this is first read."""
        known, fits = self.known, self.plan.peak_bytes + self.graph.outside_bytes <= self.plan.budget_bytes
        if fits and known is not None and known.is_of(self.plan) and known.valid:
            return ()  # a valid plan is valid for any budget that is not below its peak
        return tuple(validate(self.plan, self.graph))

    def is_of(self, plan: SwapPlan) -> bool:
        """Whether a plan is this one in every part, but for its budget."""
        parts = (field.name for field in fields(plan) if field.name != "budget_bytes")
        return all(getattr(plan, part) is getattr(self.plan, part) for part in parts)

    @property
    def valid(self) -> bool:
        """Whether the validator accepts the plan."""
        return not self.problems

    @property
    def step_seconds(self) -> float:
        """Predicted length of the step."""
        return self.plan.predicted.seconds

    @property
    def percent_of_ideal(self) -> float:
        """Speed relative to infinite memory, in percent."""
        return percent_of_ideal(self.ideal_seconds, self.step_seconds)

    @property
    def gap_to_bound_percent(self) -> float | None:
        """How much slower the step is than the bound, in percent; None if the bound is unknown."""
        return None if self.bound_seconds is None else gap_percent(self.bound_seconds, self.step_seconds)

    @cached_property
    def stall_seconds(self) -> float:
        """The part of the step that compute is predicted to spend waiting."""
        return self.plan.predicted.stall_seconds

    @cached_property
    def recompute_seconds(self) -> float:
        """The part of the step in which ops run again."""
        return recompute_seconds(self.plan)

    @cached_property
    def _copied(self) -> tuple[int, int]:
        return bytes_copied(self.graph, self.plan)

    @property
    def bytes_in(self) -> int:
        """Bytes copied to the device in each step."""
        return self._copied[0]

    @property
    def bytes_out(self) -> int:
        """Bytes copied to the host in each step."""
        return self._copied[1]

    @cached_property
    def moved(self) -> int:
        """How many storages are copied."""
        return len({copy.storage for copy in self.plan.swap_outs} | {copy.storage for copy in self.plan.swap_ins})
