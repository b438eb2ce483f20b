"""The least of a sum of star factors, or a bound: what costs too much is ruled out until the rest is eliminated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from planner.partition.search.factors.star_sum import Reduced, StarSum

#: A sum is searched in full, at once, if no more entries are gone through.
MOST_ENTRIES = 20_000_000
#: The same for one that cannot be narrowed down, and the largest table that it may take.
_LAST_ENTRIES = 1_000_000_000
_LARGEST = 30_000_000
#: A variable is eliminated before the bound is raised if no more are gone through.
MOST_OF_ONE = 10_000_000
#: As often the bound is raised before what cannot be best is left out.
_SWEEPS = 30
_ROUNDS = 12
#: Costs are floating-point sums; what is as good up to this share is kept.
EXACT = 1e-9


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What was found.

    Args:
        bound: nothing costs less.
        values: of all variables, the cheapest that were found; None if nothing was found that costs less than was
            known before.
        cost: what they cost, or what was known before.
    """

    bound: float
    values: list[int] | None
    cost: float


def narrow_down(stars: StarSum, known: float = inf, *, once: bool = False) -> Narrowed:
    """Find the least of a sum, as far as that is quick.

    Args:
        stars: the sum.
        known: a cost that can be reached; what costs more is of no interest.
        once: give up if what is left cannot be searched at once when values have been ruled out the first time.
    """
    search = _Narrowing(known)
    search.run(stars, once)
    return Narrowed(min(search.bound, search.cost), search.values, search.cost)


class _Narrowing:
    """The cheapest values so far, and the bound."""

    def __init__(self, known: float) -> None:
        self.cost, self.bound = known, -inf
        self.values: list[int] | None = None
        self._steps: list[Callable[[Sequence[int]], list[int]]] = []

    def run(self, stars: StarSum, once: bool) -> None:
        """Rule out values and eliminate variables by turns."""
        work = stars.work()
        for _ in range(_ROUNDS):
            if work.entries <= MOST_ENTRIES:
                self._finish(stars)
                return
            left = self._narrow(stars)
            if left is None:
                return
            stars = self._next(left)
            if once:
                if stars.work().entries <= MOST_ENTRIES:
                    self._finish(stars)
                return
            stars = self._next(stars.eliminated(MOST_OF_ONE))
            before, work = work, stars.work()
            if work.entries > before.entries / 2:
                if work.entries <= _LAST_ENTRIES and work.largest <= _LARGEST:
                    self._finish(stars)
                return

    def _next(self, step: Reduced) -> StarSum:
        self._steps.append(step.values)
        return step.stars

    def _finish(self, stars: StarSum) -> None:
        """Search what is left in full; what was ruled out costs more than the cheapest values."""
        done = stars.eliminated()
        self._try(done.stars.constant, done.values([]))
        self.bound = self.cost

    def _try(self, cost: float, values: Sequence[int]) -> None:
        if cost >= self.cost:
            return
        for step in reversed(self._steps):
            values = step(values)
        self.cost, self.values = cost, list(values)

    def _narrow(self, stars: StarSum) -> Reduced | None:
        """Raise the bound, try the likeliest values, and rule out those that cannot be best; None if that is all."""
        dual = stars.bound()
        halfway, bound = dual.raised(_SWEEPS)
        self.bound = max(self.bound, bound)
        above = [dual.above(variable) for variable in range(len(stars.choices))]
        likely = dual.likely()
        self._try(stars.cost(likely), likely)
        every_way = [np.ones(len(factor.parts[0]), np.bool_) for factor in stars.factors]
        for most in (8, 4, 2):
            first = [np.argsort(np.argsort(over, kind="stable"), kind="stable") < most for over in above]
            few = stars.restricted(first, every_way)
            if few.stars.work().entries <= MOST_ENTRIES:
                done = few.stars.eliminated()
                self._try(done.stars.constant, few.values(done.values([])))
                break
        if self.bound >= self.cost * (1 - EXACT):
            return None
        limit = self.cost * (1 + EXACT)
        ways = [dual.ways_above(factor) <= limit - bound for factor in range(len(stars.factors))]
        return stars.restricted([over <= limit - halfway for over in above], ways)
