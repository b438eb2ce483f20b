"""Which boxes alone show that a capacity is too low."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from planner.cancel import CancelToken
from planner.memory.packing.portfolio import CompleteSearch
from planner.memory.packing.problem import PackingProblem

Ints = NDArray[np.int64]
#: Nodes of the search that tries to do without a box, where there is no time limit.
_NODES = 20_000


@dataclass(frozen=True, eq=False)
class PackingConflict:
    """Boxes that do not fit below a capacity, whatever the others are.

    Args:
        boxes: `[chosen]`, ascending.
        irreducible: whether it is proven that they fit without any one of them. False does not mean that a smaller set
            shows it too.
    """

    boxes: Ints
    irreducible: bool


class ConflictSearch:
    """Shrinks a set of boxes that do not fit below a capacity: one box after the other is left out, for good where the
    rest still does not fit (the deletion filter: Chinneck and Dravnieks, ORSA Journal on Computing 1991).

    Args:
        problem: the boxes.
        capacity: bytes, fewer than the boxes need.
        blamed: `[chosen]`, boxes that are proven not to fit; by default those that are alive when too many are.

    Attributes:
        found: the smallest set so far.
    """

    def __init__(self, problem: PackingProblem, capacity: int, blamed: Ints | None = None) -> None:
        self._problem, self._capacity = problem, capacity
        start = self._too_many_alive()
        if start is None:
            start = np.flatnonzero(problem.sizes) if blamed is None else blamed
        self.found = PackingConflict(np.sort(start), False)

    def run(self, seconds: float | None, stop: CancelToken) -> PackingConflict:
        """Shrink the set until it is irreducible.

        Args:
            seconds: time limit; None for a limit of nodes, which finds the same every time.
            stop: checked before each search.

        Raises:
            Cancelled: cancellation was requested.
        """
        end = inf if seconds is None else perf_counter() + seconds
        boxes, needed, undecided = self.found.boxes, set[int](), set[int]()
        while True:
            # those of which nothing is known first; a smaller set may decide about the others
            untried = [box for box in boxes.tolist() if box not in needed and box not in undecided]
            now = perf_counter()
            if not untried or now >= end:
                return self.found
            box = untried[0]
            rest = boxes[boxes != box]
            fits, smaller = self._fits(rest, now + (end - now) / len(untried), seconds is None, stop)
            if fits:
                needed.add(box)
            elif fits is None:
                undecided.add(box)
            else:
                boxes = smaller
                undecided.clear()
            self.found = PackingConflict(boxes, needed.issuperset(boxes.tolist()))

    def _fits(self, boxes: Ints, until: float, by_nodes: bool, stop: CancelToken) -> tuple[bool | None, Ints]:
        """Whether boxes fit below the capacity (None: not decided); if not, those that prove it."""
        stop.check()
        if len(boxes) == 0:
            return True, boxes
        problem = self._problem
        padding = int((problem.rounded - problem.sizes)[boxes].max(initial=0))
        is_any_fixed = bool((problem.fixed[boxes] >= 0).any())
        if not is_any_fixed and int(problem.rounded[boxes].sum()) - padding <= self._capacity:
            return True, boxes  # one on top of the other
        search = CompleteSearch(problem, boxes)
        if not search.possible:
            return None, boxes
        found = search.decide(self._capacity, _NODES if by_nodes else None, until, stop)
        return found.fits, np.sort(found.blamed)

    def _too_many_alive(self) -> Ints | None:
        """The largest boxes that are alive at one time, as many as take more than the capacity, if they do."""
        problem = self._problem
        high = (problem.fixed >= 0) & (problem.fixed + problem.sizes > self._capacity) & (problem.sizes > 0)
        if high.any():
            return np.flatnonzero(high)[:1]
        owner = np.repeat(np.arange(len(problem.sizes)), np.diff(problem.span_at))
        change = np.zeros(problem.segments + 1, np.int64)
        np.add.at(change, problem.span[:, 0], problem.rounded[owner])
        np.subtract.at(change, problem.span[:, 1], problem.rounded[owner])
        live = np.cumsum(change)
        for segment in np.argsort(-live, kind="stable").tolist():
            if live[segment] <= self._capacity:
                return None
            alive = owner[(problem.span[:, 0] <= segment) & (segment < problem.span[:, 1])]
            alive = alive[np.argsort(-problem.rounded[alive], kind="stable")]
            padding = np.maximum.accumulate((problem.rounded - problem.sizes)[alive])
            too_many = np.cumsum(problem.rounded[alive]) - padding > self._capacity
            if too_many.any():
                largest: Ints = alive[: int(np.argmax(too_many)) + 1]
                return largest
        return None
