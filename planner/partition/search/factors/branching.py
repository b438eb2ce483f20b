"""The least of a sum of star factors, or a bound, by cases: every value of a variable is a case of its own.

Where variables hang together in circles, message passing lets each of them be a mixture of values. A bound for a case,
in which one variable has one value, is higher, and values that looked cheap turn out not to be. The case with the
lowest bound is divided first, so that the least bound of all cases that are left is a bound of the whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from math import inf

import numpy as np

from planner.partition.search.factors.narrowing import EXACT, Narrowed
from planner.partition.search.factors.star_sum import Reduced, StarSum

#: A case is searched in full if no more entries are gone through.
_MOST_ENTRIES = 2_000_000
#: A variable is eliminated from a case if no more are.
_MOST_OF_ONE = 20_000
#: As often the bound of the whole is raised, and that of a case.
_FIRST_SWEEPS, _SWEEPS = 60, 15
#: No more cases are looked at, and no more entries are gone through to raise their bounds.
_MOST_CASES = 250
_MOST_SWEPT = 2_000_000_000


@dataclass(frozen=True, slots=True)
class _Branch:
    """What is left of a sum in one case.

    Args:
        bound: nothing in it costs less.
        stars: the sum.
        steps: how values of it become values of the whole, one function after another, the last first.
        entries: no more are gone through at once to raise the bound of a part of it.
    """

    bound: float
    stars: StarSum
    steps: tuple[Callable[[Sequence[int]], list[int]], ...] = ()
    entries: int = 0

    def then(self, step: Reduced) -> _Branch:
        """The same with less left."""
        return replace(self, stars=step.stars, steps=(*self.steps, step.values))


def branch(stars: StarSum, known: float = inf) -> Narrowed:
    """Find the least of a sum, or a bound, by cases.

    Args:
        stars: the sum.
        known: a cost that can be reached; what costs more is of no interest.
    """
    search = _Branching(known)
    bound = search.run(_Branch(-inf, stars))
    return Narrowed(min(bound, search.cost), search.values, search.cost)


class _Branching:
    """The cheapest values so far, and what it took to find them."""

    def __init__(self, known: float) -> None:
        self.cost = known
        self.values: list[int] | None = None
        self._cases = self._swept = 0

    def run(self, whole: _Branch) -> float:
        """Divide the case with the lowest bound as long as there is one that may be cheaper; returns the bound."""
        waiting: list[tuple[float, int, _Branch]] = []
        self._look(whole, _FIRST_SWEEPS, waiting)
        while waiting and waiting[0][0] < self.cost * (1 - EXACT):
            bound, _, case = heappop(waiting)
            hub = _hub(case.stars)
            effort = 2 * _SWEEPS * case.entries * case.stars.choices[hub]
            if self._cases >= _MOST_CASES or self._swept + effort > _MOST_SWEPT:
                return bound
            for part in _divided(case, hub):
                self._look(part, _SWEEPS, waiting)
        return self.cost

    def _look(self, case: _Branch, sweeps: int, waiting: list[tuple[float, int, _Branch]]) -> None:
        """Search a small case in full; of another raise the bound and rule out values, and let what is left wait."""
        self._cases += 1
        stars = case.stars
        if stars.work().entries <= _MOST_ENTRIES:
            done = stars.eliminated()
            self._try(case, done.stars.constant, done.values([]))
            return
        dual = stars.bound()
        halfway, bound = dual.raised(sweeps)
        self._swept += 2 * sweeps * dual.entries
        likely = dual.likely()
        self._try(case, stars.cost(likely), likely)
        limit = self.cost * (1 + EXACT)
        kept = [dual.above(variable) <= limit - halfway for variable in range(len(stars.choices))]
        ways = [dual.ways_above(factor) <= limit - bound for factor in range(len(stars.factors))]
        if bound >= limit or not all(each.any() for each in (*kept, *ways)):
            return
        case = replace(case, bound=max(bound, case.bound), entries=dual.entries)
        case = case.then(stars.restricted(kept, ways))
        case = case.then(case.stars.eliminated(_MOST_OF_ONE))
        if case.stars.choices:
            heappush(waiting, (case.bound, self._cases, case))
        else:
            self._try(case, case.stars.constant, [])

    def _try(self, case: _Branch, cost: float, values: Sequence[int]) -> None:
        if cost >= self.cost:
            return
        for step in reversed(case.steps):
            values = step(values)
        self.cost, self.values = cost, list(values)


def _hub(stars: StarSum) -> int:
    """The variable that the most factors depend on."""
    touching = Counter(variable for factor in stars.factors for variable in factor.variables)
    return max(range(len(stars.choices)), key=lambda variable: (touching[variable], -stars.choices[variable]))


def _divided(case: _Branch, hub: int) -> list[_Branch]:
    """A case for every value of a variable."""
    stars = case.stars
    every_way = [np.ones(len(factor.parts[0]), np.bool_) for factor in stars.factors]
    every_value = [np.ones(count, np.bool_) for count in stars.choices]
    found = []
    for value in range(stars.choices[hub]):
        kept = [*every_value]
        kept[hub] = np.arange(stars.choices[hub]) == value
        found.append(case.then(stars.restricted(kept, every_way)))
    return found
