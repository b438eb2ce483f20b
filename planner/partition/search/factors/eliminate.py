"""Variable elimination: the exact least sum of costs that each depend on a few variables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import prod

import numpy as np
from numpy.typing import NDArray

from planner.errors import StowageError
from planner.jit import kernel

#: A table of more numbers than this is not made.
_MOST_ENTRIES = 100_000_000
Costs = NDArray[np.float64]
Ints = NDArray[np.int64]


class TooManyCombinationsError(StowageError):
    """A table of all combinations of some variables is too large.

    Args:
        variables: of the table.
        size: how many combinations there are.
    """

    def __init__(self, variables: tuple[int, ...], size: int) -> None:
        super().__init__(f"{len(variables)} groups of tensors depend on each other: {size:,} combinations")
        self.variables = variables


@dataclass(frozen=True, eq=False)
class CostTable:
    """A cost as a function of some variables.

    Args:
        variables: which, in ascending order.
        costs: the cost by their values, one dimension for each.
    """

    variables: tuple[int, ...]
    costs: Costs


@dataclass(frozen=True, slots=True)
class _Term:
    """A table whose numbers are known by a key: equal ones have one."""

    variables: tuple[int, ...]
    key: int


@dataclass(frozen=True, slots=True)
class _Elimination:
    """A variable, the terms that depend on it, all their variables, and the term without it that takes their place."""

    variable: int
    terms: list[_Term]
    around: tuple[int, ...]
    made: _Term
    new: bool


def eliminate(
    choices: Sequence[int], tables: Sequence[CostTable], most: int = _MOST_ENTRIES
) -> tuple[float, list[int]]:
    """Choose the value of every variable so that the sum of all tables is least.

    Parts of the sum that have equal tables in the same places are worked out once.

    Args:
        choices: how many values each variable has, at least 1.
        tables: the costs; equal ones that are one array are known to be equal.
        most: a table of more numbers is not made.

    Returns:
        The least sum, and the values for which it is reached.

    Raises:
        TooManyCombinationsError: the variables depend on each other too much.
    """
    arrays: list[Costs] = []
    keys: dict[int, int] = {}
    for table in tables:
        if id(table.costs) not in keys:
            keys[id(table.costs)] = len(arrays)
            arrays.append(table.costs)
    best: dict[int, NDArray[np.int16]] = {}
    decisions: list[tuple[int, tuple[int, ...], int]] = []
    least_of = dict(enumerate(arrays))

    def take(step: _Elimination) -> None:
        made = step.made
        decisions.append((step.variable, made.variables, made.key))
        if not step.new:
            return
        if (size := prod(choices[other] for other in step.around)) > most:
            raise TooManyCombinationsError(step.around, size)
        scoped = [CostTable(term.variables, least_of[term.key]) for term in step.terms]
        least_of[made.key], best[made.key] = _least(step.variable, made.variables, scoped, choices)

    given = [_Term(table.variables, keys[id(table.costs)]) for table in tables]
    constant = _visit(choices, given, len(arrays), take)
    values = [0] * len(choices)
    for variable, rest, key in reversed(decisions):
        values[variable] = int(best[key][tuple(values[other] for other in rest)])
    return sum(float(least_of[key].item()) for key in constant), values


def elimination_work(choices: Sequence[int], scopes: Sequence[tuple[tuple[int, ...], Hashable]]) -> int:
    """How many entries the tables have that `eliminate` makes.

    Args:
        choices: how many values each variable has.
        scopes: the variables of each table, and a key that equal tables have in common.
    """
    keys: dict[Hashable, int] = {}
    given = [_Term(variables, keys.setdefault(key, len(keys))) for variables, key in scopes]
    total = 0

    def take(step: _Elimination) -> None:
        nonlocal total
        total += prod(choices[other] for other in step.around) if step.new else 0

    _visit(choices, given, len(keys), take)
    return total


def _visit(
    choices: Sequence[int], given: Sequence[_Term], first_key: int, take: Callable[[_Elimination], None]
) -> list[int]:
    """Eliminate one variable after another, that with the smallest table first; returns what depends on none."""
    alive = dict(enumerate(given))
    using: list[set[int]] = [set() for _ in choices]
    for number, term in alive.items():
        for variable in term.variables:
            using[variable].add(number)
    constant = [term.key for term in given if not term.variables]
    known: dict[Hashable, int] = {}

    def scope(variable: int) -> tuple[int, ...]:
        return tuple(sorted({variable}.union(*(alive[number].variables for number in using[variable]))))

    def entries(variable: int) -> int:
        return prod(choices[other] for other in scope(variable))

    changes = [0] * len(choices)
    queue = [(entries(variable), variable, 0) for variable in range(len(choices)) if using[variable]]
    heapify(queue)
    number = len(given)
    while queue:
        _, variable, seen = heappop(queue)
        if seen != changes[variable]:
            continue
        changes[variable] = -1
        around = scope(variable)
        places = {other: place for place, other in enumerate(around)}
        terms = sorted(
            (alive.pop(each) for each in list(using[variable])),
            key=lambda term: (term.key, tuple(places[other] for other in term.variables)),
        )
        shape = tuple(choices[other] for other in around)
        look = places[variable], shape, tuple((t.key, tuple(places[other] for other in t.variables)) for t in terms)
        new = look not in known
        rest = tuple(other for other in around if other != variable)
        made = _Term(rest, known.setdefault(look, first_key + len(known)))
        take(_Elimination(variable, terms, around, made, new))
        for other in rest:
            using[other] = {each for each in using[other] if each in alive}
        if not rest:
            constant.append(made.key)
            continue
        number += 1
        alive[number] = made
        for other in rest:
            using[other].add(number)
        for other in rest:
            changes[other] += 1
            heappush(queue, (entries(other), other, changes[other]))
    return constant


def _least(
    variable: int, rest: tuple[int, ...], tables: Sequence[CostTable], choices: Sequence[int]
) -> tuple[Costs, NDArray[np.int16]]:
    """The least sum of tables over a variable, by the values of the rest, and the value it is reached for."""
    shape = [choices[other] for other in rest] or [1]
    rows, strides = [], []
    for table in tables:
        place = table.variables.index(variable)
        moved = np.ascontiguousarray(np.moveaxis(table.costs, place, -1))
        step = dict(zip((other for other in table.variables if other != variable), moved.strides, strict=False))
        rows.append(moved.reshape(-1))
        strides.append([step.get(other, 0) // moved.itemsize for other in rest] or [0])
    starts = np.cumsum([0, *map(len, rows)])[:-1]
    by_last = np.array(strides, np.int64)
    order = np.argsort(by_last[:, -1] != 0, kind="stable")
    least, best = np.empty(prod(shape)), np.empty(prod(shape), np.int16)
    _eliminate(
        np.concatenate(rows), starts[order], by_last[order], int((by_last[:, -1] == 0).sum()),
        np.array(shape, np.int64), choices[variable], least, best,
    )  # fmt: skip
    rest_shape = shape[: len(rest)]
    return least.reshape(rest_shape), best.reshape(rest_shape)


@kernel
def _eliminate(
    table: Costs, starts: Ints, strides: Ints, still: int, shape: Ints, count: int, least: Costs,
    best: NDArray[np.int16],
) -> None:  # fmt: skip
    """Sum tables and take the least over the last index; the first `still` tables do not depend on the one before."""
    tables, dimensions = strides.shape
    last = shape[dimensions - 1]
    at = starts.copy()
    index = np.zeros(dimensions, np.int64)
    base, total = np.empty(count), np.empty(count)
    for row in range(least.shape[0] // last):
        base[:] = 0.0
        for number in range(still):
            for value in range(count):
                base[value] += table[at[number] + value]
        for entry in range(last):
            for value in range(count):
                total[value] = base[value]
            for number in range(still, tables):
                start = at[number] + entry * strides[number, dimensions - 1]
                for value in range(count):
                    total[value] += table[start + value]
            low = total[0]
            for value in range(1, count):
                low = min(low, total[value])
            place = 0
            while total[place] != low:
                place += 1
            least[row * last + entry] = low
            best[row * last + entry] = place
        for dimension in range(dimensions - 2, -1, -1):
            index[dimension] += 1
            for number in range(tables):
                at[number] += strides[number, dimension]
            if index[dimension] < shape[dimension]:
                break
            for number in range(tables):
                at[number] -= strides[number, dimension] * shape[dimension]
            index[dimension] = 0
