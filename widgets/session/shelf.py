"""Plans that were found so far for a step on a machine, by budget."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from planner.plan import SwapPlan
from planner.swap import SwapSearch
from widgets.session.ground import Ground

#: Searches that are put aside hold their plans.
_MOST_SEARCHES = 8


@dataclass(frozen=True, eq=False)
class Numbers:
    """A plan in a few numbers, as it is put beside others.

    Args:
        budget_bytes: what it was made within.
        step_seconds, stall_seconds: of the step, and of it spent waiting.
        bytes_out, moved: copied to the host, and storages that are swapped.
        percent_of_ideal: how fast it is beside infinite memory.
    """

    budget_bytes: int
    step_seconds: float
    stall_seconds: float
    bytes_out: int
    moved: int
    percent_of_ideal: float

    def said(self) -> dict[str, Any]:
        """As the page takes a plan to compare with."""
        return {**asdict(self), "valid": True}

    def row(self, on_front: bool) -> list[Any]:
        """As the page takes a point."""
        return [
            self.budget_bytes, self.step_seconds, self.bytes_out, self.moved, self.stall_seconds,
            self.percent_of_ideal, int(on_front),
        ]  # fmt: skip


class Shelf:
    """Plans by budget, the fastest of each, and the numbers of all that ever were.

    Args:
        ground: the step on its machine.
    """

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self._best: dict[int, SwapPlan] = {ground.peak_bytes: ground.captured}
        self._numbers = [numbers_of(ground, ground.captured)]
        self._seen: set[int] = set()
        self._searches: dict[int, SwapSearch] = {}

    def add(self, plan: SwapPlan) -> bool:
        """Put a plan on the shelf; returns whether it is the fastest for its budget."""
        known = self._best.get(plan.budget_bytes)
        if known is not None and known.predicted.seconds <= plan.predicted.seconds:
            return False
        self._best[plan.budget_bytes] = plan
        self._numbers.append(numbers_of(self.ground, plan))
        return True

    def keep(self, budget: int, search: SwapSearch) -> None:
        """Put a search aside that one may come back to, and its plan on the shelf."""
        if search.best is not None:
            self.add(search.best)
        self._searches[budget] = search
        while len(self._searches) > _MOST_SEARCHES:
            del self._searches[next(iter(self._searches))]

    def search(self, budget: int) -> SwapSearch | None:
        """Take the search of a budget that was put aside; None where there is none."""
        return self._searches.pop(budget, None)

    def note(self, budget: int) -> None:
        """Remember that this budget was looked at, whatever came of it."""
        self._seen.add(budget)

    def seen(self, budget: int) -> bool:
        """Whether this budget was looked at."""
        return budget in self._seen

    def fitting(self, budget: int) -> SwapPlan | None:
        """The fastest plan known to fit a budget, as a plan within that budget; None if none does."""
        found = [plan for plan in self._best.values() if plan.peak_bytes <= budget]
        best = min(found, key=lambda plan: plan.predicted.seconds, default=None)
        return None if best is None else replace(best, budget_bytes=budget)

    def at(self, budget: int) -> SwapPlan | None:
        """The plan that was made for exactly this budget."""
        return self._best.get(budget)

    def least_known(self, above: int) -> int | None:
        """The smallest budget above another that a plan is known for."""
        return min((plan.peak_bytes for plan in self._best.values() if plan.peak_bytes > above), default=None)

    def samples(self) -> list[tuple[int, float]]:
        """By budget, how long a step takes with the best plan that fits it."""
        points, least = [], float("inf")
        for budget in sorted(self._best):
            least = min(least, self._best[budget].predicted.seconds)
            points.append((budget, least))
        return points

    def rows(self) -> list[list[Any]]:
        """All plans as points, by budget, and whether no other is as fast with less memory."""
        rows, least = [], float("inf")
        for numbers in sorted(self._numbers, key=lambda one: (one.budget_bytes, one.step_seconds)):
            rows.append(numbers.row(numbers.step_seconds < least))
            least = min(least, numbers.step_seconds)
        return rows


def numbers_of(ground: Ground, plan: SwapPlan) -> Numbers:
    """Sum a plan up."""
    storages, seconds = ground.graph.storages, plan.predicted.seconds
    return Numbers(
        plan.budget_bytes, seconds, plan.predicted.stall_seconds,
        sum(storages[copy.storage].bytes for copy in plan.swap_outs),
        len({copy.storage for copy in plan.swap_outs} | {copy.storage for copy in plan.swap_ins}),
        100 * ground.ideal_seconds / seconds if seconds else 100.0,
    )  # fmt: skip
