"""A lower bound by mini-buckets: variables are eliminated, and what makes too large a table is divided before.

Message passing lets each factor choose its own values where variables hang together in circles. Here factors are added
up as far as tables stay small, which makes them agree. What is divided costs no more than the whole, and all that is
left costs at least nothing once the bound of message passing has been taken off, so that the bound only rises. Sums
that stay apart pass costs to each other first, so that they prefer the same values of all variables that they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod

import numpy as np

from planner.partition.search.factors.dual_bound import DualBound
from planner.partition.search.factors.eliminate import CostTable
from planner.partition.search.factors.min_sum import Costs, min_sum
from planner.partition.search.factors.star_sum import StarSum

#: No sum of tables has more entries; the table of a factor has at most half of them, so that some can be added to it.
_MOST_ENTRIES = 2_000_000
#: As often costs are moved before.
_SWEEPS = 60


def mini_bucket_bound(stars: StarSum, most: int = _MOST_ENTRIES) -> float:
    """What a sum of star factors costs at least.

    Args:
        stars: the sum.
        most: no table has more entries, unless it is of one variable.
    """
    if not stars.choices:
        return stars.constant
    dual = stars.bound()
    dual.raised(_SWEEPS)
    return _Buckets(stars, dual, most).bound


class _Buckets:
    """The tables of what is left; a bucket holds those that depend on the variable that is eliminated next."""

    def __init__(self, stars: StarSum, dual: DualBound, most: int) -> None:
        self._choices, self._most = stars.choices, most
        self.bound = stars.constant
        self._tables: dict[int, CostTable] = {}
        self._touching: list[set[int]] = [set() for _ in stars.choices]
        self._made = 0
        for variable in range(len(stars.choices)):
            self._add((variable,), dual.own(variable))
        for number, factor in enumerate(stars.factors):
            self._add(*self._table(factor.variables, dual.parts(number)))
        sizes = {variable: self._around(variable) for variable in range(len(stars.choices))}
        while sizes:
            variable = min(sizes, key=lambda variable: (sizes[variable], variable))
            del sizes[variable]
            for other in self._eliminate(variable):
                sizes[other] = self._around(other)

    def _table(self, variables: Sequence[int], parts: Sequence[Costs]) -> tuple[tuple[int, ...], Costs]:
        """A factor as a table, or at least what it costs by some of its variables."""
        legs = dict(sorted(zip(variables, parts, strict=True)))
        others = np.zeros((len(parts[0]), 1))
        while self._size(legs) > self._most // 2 and len(legs) > 1:
            widest = max(legs, key=lambda variable: self._choices[variable])
            others = others + legs.pop(widest).min(1, keepdims=True)
        return tuple(legs), min_sum([others, *legs.values()])[0]

    def _add(self, variables: tuple[int, ...], costs: Costs) -> None:
        """Add a table, whose least cost is a part of the bound."""
        low = float(costs.min())
        self.bound += low
        if variables:
            self._tables[self._made] = CostTable(variables, costs - low)
            for variable in variables:
                self._touching[variable].add(self._made)
            self._made += 1

    def _eliminate(self, variable: int) -> set[int]:
        """Eliminate a variable from each of its mini-buckets; returns the variables whose tables have changed."""
        numbers = sorted(self._touching[variable], key=lambda number: (-self._tables[number].costs.size, number))
        tables = [self._tables.pop(number) for number in numbers]
        for number, table in zip(numbers, tables, strict=True):
            for other in table.variables:
                self._touching[other].discard(number)
        sums = [self._sum(scope, own) for scope, own in self._divided(tables)]
        for first, second in combinations(sums, 2):
            self._match(first, second)
        own = [_least_by(table, (variable,)) for table in sums]
        mean = np.mean(own, axis=0)
        for table, least in zip(sums, own, strict=True):  # all mini-buckets shall prefer the same values
            costs = table.costs + self._shaped(CostTable((variable,), mean - least), table.variables)
            place = table.variables.index(variable)
            self._add(table.variables[:place] + table.variables[place + 1 :], costs.min(place))
        return {other for table in sums for other in table.variables} - {variable}

    def _match(self, first: CostTable, second: CostTable) -> None:
        """Move costs between two tables so that both cost at least the same by the variables that they share."""
        shared = tuple(other for other in first.variables if other in second.variables)
        if len(shared) < 2:
            return
        moved = CostTable(shared, (_least_by(second, shared) - _least_by(first, shared)) / 2)
        first.costs[...] += self._shaped(moved, first.variables)
        second.costs[...] -= self._shaped(moved, second.variables)

    def _divided(self, tables: Sequence[CostTable]) -> list[tuple[set[int], list[CostTable]]]:
        """The tables of each mini-bucket, with its variables: each joins that which grows the least by it."""
        found: list[tuple[set[int], list[CostTable]]] = []
        for table in tables:
            sizes = [(self._size(scope.union(table.variables)), place) for place, (scope, _) in enumerate(found)]
            fits = [(size / self._size(found[place][0]), place) for size, place in sizes if size <= self._most]
            if fits:
                scope, own = found[min(fits)[1]]
                scope.update(table.variables)
                own.append(table)
            else:
                found.append((set(table.variables), [table]))
        return found

    def _sum(self, scope: set[int], tables: Sequence[CostTable]) -> CostTable:
        variables = tuple(sorted(scope))
        costs = np.zeros([self._choices[variable] for variable in variables])
        for table in tables:
            costs += self._shaped(table, variables)
        return CostTable(variables, costs)

    def _shaped(self, table: CostTable, variables: Sequence[int]) -> Costs:
        """The costs of a table with a dimension for each of several variables."""
        return table.costs.reshape([self._choices[each] if each in table.variables else 1 for each in variables])

    def _around(self, variable: int) -> int:
        """How many entries the table of all that depends on a variable would have."""
        return self._size({variable}.union(*(self._tables[each].variables for each in self._touching[variable])))

    def _size(self, variables: Sequence[int] | set[int] | dict[int, Costs]) -> int:
        return prod(self._choices[variable] for variable in variables)


def _least_by(table: CostTable, variables: Sequence[int]) -> Costs:
    """The least costs of a table by the values of some of its variables."""
    least: Costs = table.costs.min(tuple(place for place, each in enumerate(table.variables) if each not in variables))
    return least
