"""A sum of star factors: what it costs, what is left of it when values are ruled out, and when variables are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from planner.partition.search.factors.dual_bound import DualBound, StarFactor
from planner.partition.search.factors.eliminate import CostTable, Eliminated, Scope, Work, elimination_work
from planner.partition.search.factors.min_sum import FORBIDDEN, Costs, min_sum

Kept = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class StarSum:
    """Costs as a sum.

    Args:
        choices: how many values every variable has.
        factors: the costs; equal ones have the same arrays as parts.
        unaries: per variable, its own costs.
        constant: what is to be added.
    """

    choices: Sequence[int]
    factors: Sequence[StarFactor]
    unaries: Sequence[Costs]
    constant: float

    @staticmethod
    def of(
        choices: Sequence[int], stars: Sequence[StarFactor], constant: float = 0.0,
        unaries: Sequence[Costs] | None = None,
    ) -> StarSum:  # fmt: skip
        """A sum of stars of which some depend on one variable alone, or on none."""
        own = [np.zeros(size) for size in choices] if unaries is None else list(unaries)
        factors = []
        for star in stars:
            if len(star.variables) > 1:
                factors.append(star)
            elif star.variables:
                (variable,) = star.variables
                own[variable] = own[variable] + star.parts[0].min(0)
            else:
                constant += float(star.parts[0].min())
        return StarSum(choices, factors, own, constant)

    def cost(self, values: Sequence[int]) -> float:
        """What values of all variables cost."""
        total = self.constant + sum(float(own[value]) for own, value in zip(self.unaries, values, strict=True))
        for factor in self.factors:
            legs = zip(factor.variables, factor.parts, strict=True)
            total += float(np.sum([part[:, values[variable]] for variable, part in legs], axis=0).min())
        return total

    def bound(self) -> DualBound:
        """A lower bound, to be raised."""
        return DualBound(self.choices, self.factors, self.unaries, self.constant)

    def work(self) -> Work:
        """What it takes to eliminate all variables."""
        return elimination_work(self.choices, self._scopes())

    def eliminated(self, most: float = inf) -> Reduced:
        """The sum without the variables that can be eliminated by going through no more entries than `most`."""
        factors = len(self.factors)

        def table(term: int) -> CostTable:
            if term >= factors:
                return CostTable((term - factors,), self.unaries[term - factors])
            factor = self.factors[term]
            return CostTable(factor.variables, min_sum(factor.parts) if factor.table is None else factor.table)

        def star(term: int) -> StarFactor:
            return table_star(table(term)) if term >= factors else self.factors[term]

        done = Eliminated(self.choices, self._scopes(), lambda term: table(term).alone(), most)
        return reduced(self.choices, done, star, self.constant)

    def restricted(self, kept: Sequence[Kept], kept_ways: Sequence[Kept]) -> Reduced:
        """The sum without some values of variables and some ways of factors; what is settled by that is left out."""
        known: dict[object, Costs] = {}

        def part_of(part: Costs, ways: Kept, values: Kept) -> Costs:
            key = id(part), ways.tobytes(), values.tobytes()
            if key not in known:
                known[key] = np.ascontiguousarray(part[ways][:, values])
            return known[key]

        def joined(part: Costs, settled: Sequence[Costs]) -> Costs:
            for one in settled:
                key = id(part), id(one)
                if key not in known:
                    known[key] = part + one
                part = known[key]
            return part

        def table_of(factor: StarFactor) -> Costs | None:
            if factor.table is None:
                return None
            chosen = [numbers[variable] for variable in factor.variables]
            key = id(factor.table), tuple(each.tobytes() for each in chosen)
            if key not in known:
                sizes = [len(each) for each in chosen if len(each) > 1]
                known[key] = factor.table[np.ix_(*chosen)].reshape(sizes)
            return known[key]

        numbers = [np.flatnonzero(values) for values in kept]
        open_ = [variable for variable, values in enumerate(numbers) if len(values) > 1]
        places = {variable: place for place, variable in enumerate(open_)}
        unaries = [self.unaries[variable][kept[variable]] for variable in open_]
        constant = self.constant + sum(
            float(self.unaries[variable][values[0]]) for variable, values in enumerate(numbers) if len(values) == 1
        )
        stars = []
        for factor, ways in zip(self.factors, kept_ways, strict=True):
            parts = {
                variable: part_of(part, ways, kept[variable])
                for variable, part in zip(factor.variables, factor.parts, strict=True)
            }
            settled = [parts.pop(variable) for variable in factor.variables if variable not in places]
            if parts:
                first = next(iter(parts))
                parts[first] = joined(parts[first], settled)
                open_parts = tuple(places[variable] for variable in parts)
                stars.append(StarFactor(open_parts, tuple(parts.values()), table_of(factor)))
            else:
                stars.append(StarFactor((), (joined(settled[0], settled[1:]),)))
        found = StarSum.of([len(numbers[variable]) for variable in open_], stars, constant, unaries)

        def values(chosen: Sequence[int]) -> list[int]:
            values = [int(each[0]) for each in numbers]
            for variable, value in zip(open_, chosen, strict=True):
                values[variable] = int(numbers[variable][value])
            return values

        return Reduced(found, values)

    def _scopes(self) -> list[Scope]:
        factors = [(factor.variables, tuple(map(id, factor.parts))) for factor in self.factors]
        return [*factors, *(((variable,), id(own)) for variable, own in enumerate(self.unaries))]


@dataclass(frozen=True, eq=False)
class Reduced:
    """A sum of which less is left.

    Args:
        stars: what is left.
        values: the best values of all variables there were, given values of those that are left.
    """

    stars: StarSum
    values: Callable[[Sequence[int]], list[int]]


def reduced(
    choices: Sequence[int], eliminated: Eliminated, term: Callable[[int], StarFactor], constant: float = 0.0
) -> Reduced:
    """What is left after variables have been eliminated, as a sum of star factors.

    Args:
        choices: how many values every variable had.
        eliminated: the terms that are left.
        term: gives one of those that were there before.
        constant: what is to be added.
    """
    alike: dict[int, StarFactor] = {}
    stars = list(map(term, eliminated.given))
    for table in eliminated.made:
        if id(table.costs) not in alike:
            alike[id(table.costs)] = table_star(table)
        stars.append(replace(alike[id(table.costs)], variables=table.variables))
    left = sorted({variable for star in stars for variable in star.variables})
    places = {variable: place for place, variable in enumerate(left)}
    named = [replace(star, variables=tuple(places[variable] for variable in star.variables)) for star in stars]
    found = StarSum.of([choices[variable] for variable in left], named, constant + eliminated.constant)
    return Reduced(found, lambda chosen: eliminated.values(dict(zip(left, chosen, strict=True))))


def table_star(table: CostTable) -> StarFactor:
    """A table as a star: its ways are the values of all variables but that with the most."""
    shape = table.costs.shape
    if len(shape) < 2:
        return StarFactor(table.variables, (table.costs.reshape(1, -1),), table.costs)
    widest = int(np.argmax(shape))
    others = [place for place in range(len(shape)) if place != widest]
    ways = np.indices([shape[place] for place in others]).reshape(len(others), -1)
    parts = [np.ascontiguousarray(np.moveaxis(table.costs, widest, -1)).reshape(-1, shape[widest])] * len(shape)
    for place, values in zip(others, ways, strict=True):
        parts[place] = np.where(values[:, None] == np.arange(shape[place]), 0.0, FORBIDDEN)
    return StarFactor(table.variables, tuple(parts), table.costs)
