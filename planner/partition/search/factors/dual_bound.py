"""A lower bound by message passing: costs move between factors until what each of them costs at least is most.

Every factor is a star: a hidden choice (how an op is split) whose cost is a sum of one part for each variable around
it. What a factor costs at least for a value of one of its variables is moved to the variable and on to the factors that
come later in the order, forward and backward by turns (sequential reweighted message passing).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.partition.search.factors.message_passing import decide, start_least, sweep
from planner.partition.search.factors.min_sum import Costs

Ints = NDArray[np.int64]
#: A bound that rises by a smaller share in a sweep is not raised further.
_RISE = 1e-5


@dataclass(frozen=True, eq=False)
class StarFactor:
    """A cost that is the least over some hidden ways of a sum of one part for each variable.

    Args:
        variables: which.
        parts: for each, the costs by way and value.
        table: the cost by the values of all variables, where it was known from the beginning.
    """

    variables: tuple[int, ...]
    parts: tuple[Costs, ...]
    table: Costs | None = None


class FactorArrays(NamedTuple):
    """Star factors as arrays; a leg is a factor's part for one variable.

    Args:
        table: the costs of all different parts, one after another.
        start, ways, values: per leg, where its part begins, and its shape.
        variable, factor: per leg, whose it is.
        legs: per factor, its first leg, and the end.
        messages: per leg, where the costs moved to it by value begin.
        least: per leg, where its least costs by way begin.
        touching, touching_start: the legs of every variable.
        order: when variables are visited.
        rank: per variable, its place in the order.
        unary: per variable, where its own costs begin.
    """

    table: Costs
    start: Ints
    ways: Ints
    values: Ints
    variable: Ints
    factor: Ints
    legs: Ints
    messages: Ints
    least: Ints
    touching: Ints
    touching_start: Ints
    order: Ints
    rank: Ints
    unary: Ints


class DualBound:
    """The bound, and what each value of each variable costs at least.

    Args:
        choices: how many values every variable has.
        factors: the costs.
        unaries: per variable, its own costs.
        constant: what is to be added to everything.
    """

    def __init__(
        self, choices: Sequence[int], factors: Sequence[StarFactor], unaries: Sequence[Costs], constant: float = 0.0
    ) -> None:
        """Lay everything out in arrays; no costs are moved yet."""
        self._constant = constant
        self._arrays = _arrays(choices, factors)
        arrays = self._arrays
        self._unary = np.concatenate([*unaries, np.zeros(0)])
        self._messages = np.zeros(int(arrays.values.sum()))
        self._least = np.zeros(int(arrays.ways.sum()))
        self._floor = np.zeros(int(arrays.unary[-1]))
        start_least(arrays.table, arrays.start, arrays.ways, arrays.values, arrays.least, self._least)

    @property
    def entries(self) -> int:
        """How many entries of tables each pass goes through."""
        return max(1, self._arrays.table.size)

    def raised(self, sweeps: int) -> tuple[float, float]:
        """Move costs forward and backward until the bound hardly rises; returns the bounds before and after the last.

        Args:
            sweeps: at most as often.
        """
        bound = -inf
        for _ in range(sweeps):
            before, halfway = bound, self._pass(backward=False)
            bound = self._pass(backward=True)
            if bound - before < _RISE * abs(bound):
                break
        return halfway, bound

    def _pass(self, backward: bool) -> float:
        a = self._arrays
        bound = sweep(
            a.table, a.start, a.ways, a.values, a.variable, a.factor, a.legs, a.messages, a.least, a.touching,
            a.touching_start, a.order, a.rank, a.unary, self._unary, self._messages, self._least, self._floor, backward,
        )  # fmt: skip
        return float(bound) + self._constant

    def likely(self) -> list[int]:
        """Values for all variables, chosen one after another, each the cheapest given those before and the bound."""
        a = self._arrays
        values = np.zeros(len(a.order), np.int64)
        decide(
            a.table, a.start, a.ways, a.values, a.factor, a.legs, a.messages, a.least, a.touching, a.touching_start,
            a.order, a.unary, self._unary, self._messages, self._least.copy(), values,
        )  # fmt: skip
        return [int(value) for value in values]

    def above(self, variable: int) -> Costs:
        """By value of a variable, how much more than before the last pass everything costs at least."""
        return self._floor[self._arrays.unary[variable] : self._arrays.unary[variable + 1]]

    def ways_above(self, factor: int) -> Costs:
        """By way of a factor, how much more than the bound everything costs at least."""
        a = self._arrays
        legs = range(a.legs[factor], a.legs[factor + 1])
        total = np.sum([self._least[a.least[leg] : a.least[leg] + a.ways[leg]] for leg in legs], axis=0)
        above: Costs = total - total.min()
        return above

    def own(self, variable: int) -> Costs:
        """The costs of a variable by value, with what was moved to them."""
        return self._unary[self._arrays.unary[variable] : self._arrays.unary[variable + 1]]

    def parts(self, factor: int) -> list[Costs]:
        """The parts of a factor by way and value, with what was moved to them."""
        a = self._arrays
        found = []
        for leg in range(a.legs[factor], a.legs[factor + 1]):
            ways, values = a.ways[leg], a.values[leg]
            part = a.table[a.start[leg] : a.start[leg] + ways * values].reshape(ways, values)
            found.append(part + self._messages[a.messages[leg] : a.messages[leg] + values])
        return found


def _arrays(choices: Sequence[int], factors: Sequence[StarFactor]) -> FactorArrays:
    known: dict[int, int] = {}
    tables: list[Costs] = []
    size = 0
    legs: list[tuple[int, int, int, int, int]] = []
    first = [0]
    for number, factor in enumerate(factors):
        for variable, part in zip(factor.variables, factor.parts, strict=True):
            if id(part) not in known:
                known[id(part)] = size
                tables.append(part.ravel())
                size += part.size
            legs.append((known[id(part)], *part.shape, variable, number))
        first.append(len(legs))
    start, ways, values, variable_of, factor_of = np.array(legs, np.int64).reshape(-1, 5).T.copy()
    ends = np.concatenate([[0], np.cumsum(values)]), np.concatenate([[0], np.cumsum(ways)])
    touching = np.argsort(variable_of, kind="stable")
    counts = np.bincount(variable_of, minlength=len(choices))
    order = np.arange(len(choices))
    met = np.full(len(choices), len(factors))
    np.minimum.at(met, variable_of, factor_of)
    order = order[np.argsort(met, kind="stable")]
    rank = np.empty(len(choices), np.int64)
    rank[order] = np.arange(len(choices))
    table = np.concatenate([*tables, np.zeros(0)])
    return FactorArrays(
        table, start, ways, values, variable_of, factor_of, np.array(first), ends[0][:-1], ends[1][:-1], touching,
        np.concatenate([[0], np.cumsum(counts)]), order, rank, np.concatenate([[0], np.cumsum(choices)]),
    )  # fmt: skip
