"""The plans found so far for a step on a machine, by budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.plan import PlanSummary, SwapPlan
from planner.swap import SwapSearch
from widgets.info import Feasibility

#: Limit on stored searches, because each keeps its plans in memory.
_MOST_SEARCHES = 8


class PlanCache:
    """The fastest plan for each budget, and the summary of every plan that was added.

    Args:
        feasibility: the feasibility of the step on its machine.
    """

    def __init__(self, feasibility: Feasibility) -> None:
        self.feasibility = feasibility
        self._best: dict[int, SwapPlan] = {feasibility.peak_bytes: feasibility.captured}
        self._unbeaten = [feasibility.captured]
        self._summaries: list[PlanSummary] = []
        self._summaries.append(self.summary(feasibility.captured))
        self._seen: set[int] = set()
        self._searches: dict[tuple[int, str], SwapSearch] = {}

    def add(self, plan: SwapPlan) -> bool:
        """Add a plan to the cache; returns whether it is the fastest for its budget.

        A slower one is kept, too, where it takes less memory: it may fit a budget that the faster one does not.
        """
        if not any(_beats(other, plan) for other in self._unbeaten):
            self._unbeaten = [other for other in self._unbeaten if not _beats(plan, other)]
            self._unbeaten.append(plan)
        known = self._best.get(plan.budget_bytes)
        if known is not None and known.predicted.seconds <= plan.predicted.seconds:
            return False
        self._best[plan.budget_bytes] = plan
        self._summaries.append(self.summary(plan))
        return True

    def summary(self, plan: SwapPlan, bound_seconds: float | None = None) -> PlanSummary:
        """The key figures of a plan for this step on this machine.

        Args:
            plan: a plan, in the cache or not.
            bound_seconds: lower bound on the step time within its budget; None if unknown.
        """
        known = next((one for one in [*self._summaries] if one.is_of(plan)), None)
        return PlanSummary(self.feasibility.graph, plan, self.feasibility.ideal_seconds, bound_seconds, known)

    def keep(self, budget: int, method: str, search: SwapSearch) -> None:
        """Store a search that may be resumed, and add its plan to the cache."""
        if search.best is not None:
            self.add(search.best)
        self._searches[budget, method] = search
        while len(self._searches) > _MOST_SEARCHES:
            del self._searches[next(iter(self._searches))]

    def search(self, budget: int, method: str) -> SwapSearch | None:
        """Remove and return the stored search of a budget by a method, or None."""
        return self._searches.pop((budget, method), None)

    def note(self, budget: int) -> None:
        """Record that this budget was tried, whatever the result."""
        self._seen.add(budget)

    def seen(self, budget: int) -> bool:
        """Whether this budget was tried."""
        return budget in self._seen

    def fitting(self, budget: int) -> SwapPlan | None:
        """The fastest known plan that fits a budget, as a plan with that budget; None if there is none."""
        found = [plan for plan in self._unbeaten if self._taken(plan) <= budget]
        best = min(found, key=lambda plan: plan.predicted.seconds, default=None)
        return None if best is None else replace(best, budget_bytes=budget)

    def at(self, budget: int) -> SwapPlan | None:
        """The plan that was made for exactly this budget."""
        return self._best.get(budget)

    def least_known(self, above: int) -> int | None:
        """The smallest budget above `above` for which a plan is known."""
        return min((taken for taken in map(self._taken, self._unbeaten) if taken > above), default=None)

    def _taken(self, plan: SwapPlan) -> int:
        """Device bytes that a plan takes, with the scratch memory outside of its arena."""
        return plan.peak_bytes + self.feasibility.graph.outside_bytes

    def samples(self) -> list[tuple[int, float]]:
        """Pairs of budget and seconds per step of the best plan that fits it, by budget."""
        points, least = [], float("inf")
        for budget in sorted(self._best):
            least = min(least, self._best[budget].predicted.seconds)
            points.append((budget, least))
        return points

    def rows(self) -> list[list[Any]]:
        """All plans as points, by budget, each with whether no other plan is as fast with less memory."""
        rows, least = [], float("inf")
        for one in sorted(self._summaries, key=lambda one: (one.plan.budget_bytes, one.step_seconds)):
            rows.append(_row(one, one.step_seconds < least))
            least = min(least, one.step_seconds)
        return rows


def _beats(one: SwapPlan, other: SwapPlan) -> bool:
    """Whether a plan is as fast as another with as little memory."""
    return one.predicted.seconds <= other.predicted.seconds and one.peak_bytes <= other.peak_bytes


def compared(figures: PlanSummary) -> dict[str, Any]:
    """The fields of the page's comparison message."""
    return {
        "budget_bytes": figures.plan.budget_bytes, "step_seconds": figures.step_seconds,
        "stall_seconds": figures.stall_seconds, "recompute_seconds": figures.recompute_seconds,
        "bytes_out": figures.bytes_out, "moved": figures.moved, "percent_of_ideal": figures.percent_of_ideal,
        "valid": figures.valid,
    }  # fmt: skip


def _row(figures: PlanSummary, on_front: bool) -> list[Any]:
    """The columns of one point of the page's front."""
    return [
        figures.plan.budget_bytes, figures.step_seconds, figures.bytes_out, figures.moved, figures.stall_seconds,
        figures.percent_of_ideal, int(on_front), figures.recompute_seconds,
    ]  # fmt: skip
