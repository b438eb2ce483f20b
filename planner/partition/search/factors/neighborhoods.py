"""Search in large neighbourhoods, each exactly: what else some variables could be, or what several choices could share.

Choices that a rising bound suggests one after another are each good in another place. Taken together they leave every
variable a few values, among which variable elimination finds the best; mostly it is far better than any of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod

import numpy as np

from planner.partition.search.factors.eliminate import CostTable, eliminate, elimination_work
from planner.partition.search.factors.min_sum import Costs, min_sum
from planner.partition.search.factors.star_sum import StarSum

#: A neighbourhood grows as long as no more entries are gone through to solve it.
_MOST_ENTRIES = 300_000
#: No table of one factor has more.
_MOST_OF_ONE = 30_000
#: It has no more variables.
_MOST_VARIABLES = 40
#: Every variable is in as many neighbourhoods, or more.
_COVERED = 2
_SWEEPS = 4
#: So many choices are decoded while the bound rises, and combined as long as no more entries are gone through.
_DECODED = 40
_MOST_COMBINED = 10_000_000


class NeighborhoodSearch:
    """Sums of star factors, made less by choosing a few variables at a time.

    Args:
        stars: the sum.
    """

    def __init__(self, stars: StarSum) -> None:
        """Find the neighbourhoods."""
        self._choices, self._factors, self._unaries = stars.choices, stars.factors, stars.unaries
        self._touching: list[list[int]] = [[] for _ in stars.choices]
        for number, factor in enumerate(stars.factors):
            for variable in factor.variables:
                self._touching[variable].append(number)
        self._stars = stars
        covered = [0] * len(stars.choices)
        self._neighborhoods: list[list[int]] = []
        for variable, count in enumerate(stars.choices):
            if count > 1 and covered[variable] < _COVERED:
                self._neighborhoods.append(self._around(variable))
                for other in self._neighborhoods[-1]:
                    covered[other] += 1

    def run(self) -> list[int]:
        """Good values of all variables."""
        dual, decoded = self._stars.bound(), list[list[int]]()
        for _ in range(_DECODED):
            dual.raised(1)
            decoded.append(dual.likely())
        return self.improve(self.combine(decoded))

    def combine(self, several: Sequence[Sequence[int]]) -> list[int]:
        """The best values of all variables, each from one of several choices.

        Args:
            several: the choices; where together they leave too much, the better half of them is taken.
        """
        several = sorted(several, key=self._stars.cost)
        every_way = [np.ones(len(factor.parts[0]), np.bool_) for factor in self._factors]
        while True:
            kept = [np.zeros(count, np.bool_) for count in self._choices]
            for values in several:
                for own, value in zip(kept, values, strict=True):
                    own[value] = True
            few = self._stars.restricted(kept, every_way)
            if few.stars.work().entries <= _MOST_COMBINED:
                return few.values(few.stars.eliminated().values([]))
            several = several[: len(several) // 2]

    def improve(self, values: Sequence[int]) -> list[int]:
        """Values of all variables that cost no more than others, and less where a neighbourhood has better ones."""
        values = list(values)
        for _ in range(_SWEEPS):
            before = list(values)
            for free in self._neighborhoods:
                for variable, value in zip(free, self._solve(free, values), strict=True):
                    values[variable] = value
            if values == before:
                break
        return values

    def _around(self, center: int) -> list[int]:
        """A variable, and those that depend on it and on each other the most, as many as are solved quickly."""
        found, refused = [center], set[int]()
        while len(found) < _MOST_VARIABLES:
            near = Counter(
                other
                for variable in found
                for number in self._touching[variable]
                for other in self._factors[number].variables
            )
            taken = refused.union(found)
            open_ = [other for other in near if other not in taken and self._choices[other] > 1]
            if not open_:
                break
            nearest = max(open_, key=lambda other: (near[other], -other))
            if self._quick(sorted([*found, nearest])):
                found.append(nearest)
            else:
                refused.add(nearest)
        return sorted(found)

    def _quick(self, free: Sequence[int]) -> bool:
        places = {variable: place for place, variable in enumerate(free)}
        scopes = []
        for number in self._numbers(free):
            around = [variable for variable in self._factors[number].variables if variable in places]
            if prod(self._choices[variable] for variable in around) > _MOST_OF_ONE:
                return False
            scopes.append((tuple(sorted(places[variable] for variable in around)), number))
        return elimination_work([self._choices[variable] for variable in free], scopes).entries <= _MOST_ENTRIES

    def _numbers(self, free: Sequence[int]) -> list[int]:
        return sorted({number for variable in free for number in self._touching[variable]})

    def _solve(self, free: Sequence[int], values: Sequence[int]) -> list[int]:
        """The best values of some variables, the others as they are."""
        places = {variable: place for place, variable in enumerate(free)}
        tables = [CostTable((place,), self._unaries[variable]) for variable, place in places.items()]
        for number in self._numbers(free):
            factor = self._factors[number]
            own: dict[int, Costs] = {}
            base = np.zeros((len(factor.parts[0]), 1))
            for variable, part in zip(factor.variables, factor.parts, strict=True):
                if variable in places:
                    own[places[variable]] = part
                else:
                    base = base + part[:, values[variable], None]
            scope = tuple(sorted(own))
            tables.append(CostTable(scope, min_sum([base, *(own[place] for place in scope)])[0]))
        return eliminate([self._choices[variable] for variable in free], tables)[1]
