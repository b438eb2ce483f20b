"""Variable elimination: the exact least sum of costs that each depend on a few variables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.errors import StowageError
from planner.jit import kernel
from planner.partition.search.factors.elimination_order import Elimination, Term, eliminate_in_order

#: No more entries are gone through to eliminate a variable.
_MOST_ENTRIES = 100_000_000
Costs = NDArray[np.float64]
Ints = NDArray[np.int64]
#: The variables that a term of a sum depends on, and a key that terms with equal tables have in common.
Scope = tuple[tuple[int, ...], Hashable]


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


class Eliminated:
    """Costs from which variables have been eliminated as long as that takes small tables.

    GroupsAndOps of the sum that have equal tables in the same places are worked out once.

    Args:
        choices: how many values each variable has, at least 1.
        scopes: per term of the sum, the variables that it depends on, in ascending order, and a key that terms with
            equal tables have in common.
        costs: gives the table of a term by its number; asked for those alone that are needed.
        most: no more entries are gone through to eliminate a variable.

    Attributes:
        constant: what the eliminated variables cost by themselves.
        given: the numbers of the terms that are left.
        made: the tables that took the place of others, and are left.
        refused: the variables of the smallest table that was too large; empty if all variables are eliminated.
    """

    def __init__(
        self, choices: Sequence[int], scopes: Sequence[Scope], costs: Callable[[int], Costs], most: float
    ) -> None:
        """Eliminate one variable after another; what is not needed any more is dropped."""
        self._choices = choices
        given = _terms(scopes)
        number_of = {term.key: number for number, term in reversed(list(enumerate(given)))}
        self._best: dict[int, NDArray[np.int16]] = {}
        self._steps: list[Elimination] = []
        rest = eliminate_in_order(choices, given, self._steps.append, most)
        last = {term.key: place for place, step in enumerate(self._steps) if step.new for term in step.terms}
        last |= {key: len(self._steps) for key in (*rest.constant, *(term.key for term in rest.terms.values()))}
        known: dict[int, Costs] = {}
        scratch = _Scratch()

        def table(key: int) -> Costs:
            return known[key] if key in known else known.setdefault(key, costs(number_of[key]))

        for place, step in enumerate(self._steps):
            if step.new:
                made = step.made
                tables = [CostTable(term.variables, table(term.key)) for term in step.terms]
                known[made.key], self._best[made.key] = _least(step.variable, made.variables, tables, choices, scratch)
                for term in step.terms:
                    if last[term.key] == place:
                        known.pop(term.key, None)
        self.constant = sum(float(table(key).item()) for key in rest.constant)
        self.given = [number for number in rest.terms if number < len(given)]
        self.made = [
            CostTable(term.variables, table(term.key)) for number, term in rest.terms.items() if number >= len(given)
        ]
        self.refused = rest.refused

    def values(self, known: Mapping[int, int]) -> list[int]:
        """The best values of all variables, given those of the variables that are left."""
        values = [known.get(variable, 0) for variable in range(len(self._choices))]
        for step in reversed(self._steps):
            around = tuple(values[other] for other in step.made.variables)
            values[step.variable] = int(self._best[step.made.key][around])
        return values


def eliminate(
    choices: Sequence[int], tables: Sequence[CostTable], most: int = _MOST_ENTRIES
) -> tuple[float, list[int]]:
    """Choose the value of every variable so that the sum of all tables is least.

    Args:
        choices: how many values each variable has, at least 1.
        tables: the costs; equal ones that are one array are known to be equal.
        most: no more entries are gone through to eliminate a variable.

    Returns:
        The least sum, and the values for which it is reached.

    Raises:
        TooManyCombinationsError: the variables depend on each other too much.
    """
    scopes = [(table.variables, id(table.costs)) for table in tables]
    eliminated = Eliminated(choices, scopes, lambda number: tables[number].costs, most)
    if around := eliminated.refused:
        raise TooManyCombinationsError(around, prod(choices[variable] for variable in around))
    return eliminated.constant, eliminated.values({})


class Work(NamedTuple):
    """What it takes to eliminate variables.

    Args:
        entries: how many sums are compared.
        largest: how many entries the largest table has that is taken up or made.
        left: how many variables are not eliminated.
    """

    entries: int
    largest: int
    left: int


def elimination_work(choices: Sequence[int], scopes: Sequence[Scope], most: float = inf) -> Work:
    """What `Eliminated` would do.

    Args:
        choices: how many values each variable has.
        scopes: the variables of each table, and a key that equal tables have in common.
        most: no more entries are gone through to eliminate a variable.
    """
    given = _terms(scopes)
    entries, largest = 0, 1

    def take(step: Elimination) -> None:
        nonlocal entries, largest
        if step.new:
            size = prod(choices[other] for other in step.around)
            entries += size
            tables = (prod(choices[other] for other in term.variables) for term in step.terms)
            largest = max(largest, size // choices[step.variable], *tables)

    rest = eliminate_in_order(choices, given, take, most)
    return Work(entries, largest, len({variable for term in rest.terms.values() for variable in term.variables}))


def _terms(scopes: Sequence[Scope]) -> list[Term]:
    keys: dict[Hashable, int] = {}
    return [Term(variables, keys.setdefault(key, len(keys))) for variables, key in scopes]


class _Scratch:
    """Memory for the tables of one elimination, which is used again for the next."""

    def __init__(self) -> None:
        self._memory, self._total = np.empty(0), np.empty(0)

    def total(self, costs: Sequence[Costs]) -> Costs:
        """The sum of tables of one shape; overwritten by the next call."""
        first = np.ascontiguousarray(costs[0])
        if len(costs) == 1:
            return first
        if len(self._total) < first.size:
            self._total = np.empty(first.size)
        total = np.add(first, costs[1], out=self._total[: first.size].reshape(first.shape))
        for more in costs[2:]:
            total += more
        return total

    def filled(self, parts: Sequence[Costs]) -> Costs:
        """All numbers of some arrays in their order, one array after another; overwritten by the next call."""
        size = sum(part.size for part in parts)
        if len(self._memory) < size:
            self._memory = np.empty(size)
        first = 0
        for part in parts:
            self._memory[first : first + part.size].reshape(part.shape)[...] = part
            first += part.size
        return self._memory


def _least(
    variable: int, rest: tuple[int, ...], tables: Sequence[CostTable], choices: Sequence[int], scratch: _Scratch
) -> tuple[Costs, NDArray[np.int16]]:
    """The least sum of tables over a variable, by the values of the rest, and the value it is reached for."""
    shape = [choices[other] for other in rest] or [1]
    around = max(tables, key=lambda table: table.costs.size).variables
    others = [table for table in tables if table.variables != around]
    strides = []
    for table in others:
        step, wide = dict[int, int](), choices[variable]
        for other in reversed(table.variables):
            if other != variable:
                step[other] = wide
                wide *= choices[other]
        strides.append([step.get(other, 0) for other in rest] or [0])
    by_last = np.array(strides, np.int64).reshape(len(others), len(shape))
    order = np.argsort(by_last[:, -1] != 0, kind="stable")
    parts = [np.moveaxis(others[place].costs, others[place].variables.index(variable), -1) for place in order]
    starts = np.cumsum([0, *(part.size for part in parts)])[:-1]
    least, best = np.empty(prod(shape)), np.empty(prod(shape), np.int16)
    # the largest tables are read where they are
    large = scratch.total([table.costs for table in tables if table.variables == around])
    steps = dict(zip(around, (stride // large.itemsize for stride in large.strides), strict=True))
    _eliminate(
        scratch.filled(parts), starts, by_last[order], int((by_last[:, -1] == 0).sum()),
        large.ravel(), np.array([steps.get(other, 0) for other in rest] or [0], np.int64), steps[variable],
        np.array(shape, np.int64), choices[variable], least, best,
    )  # fmt: skip
    rest_shape = shape[: len(rest)]
    return least.reshape(rest_shape), best.reshape(rest_shape)


@kernel
def _eliminate(
    table: Costs, starts: Ints, strides: Ints, still: int, large: Costs, large_strides: Ints, large_step: int,
    shape: Ints, count: int, least: Costs, best: NDArray[np.int16],
) -> None:  # fmt: skip
    """Sum tables and take the least over a variable; the first `still` tables do not depend on the one before.

    The variable is the last of all tables but the large one, which has it at steps of its own.
    """
    tables, dimensions = strides.shape
    last, large_last = shape[dimensions - 1], large_strides[dimensions - 1]
    at = starts.copy()
    large_at = 0
    index = np.zeros(dimensions, np.int64)
    base, total = np.empty(count), np.empty(last)
    for row in range(least.shape[0] // last):
        base[:] = 0.0
        for number in range(still):
            for value in range(count):
                base[value] += table[at[number] + value]
        first = row * last
        for value in range(count):
            own = large_at + value * large_step
            low = base[value]
            if value == 0:
                for entry in range(last):
                    least[first + entry] = low + large[own + entry * large_last]
                    best[first + entry] = 0
                for number in range(still, tables):
                    for entry in range(last):
                        least[first + entry] += table[at[number] + entry * strides[number, dimensions - 1]]
                continue
            for entry in range(last):
                total[entry] = low + large[own + entry * large_last]
            for number in range(still, tables):
                start, step = at[number] + value, strides[number, dimensions - 1]
                for entry in range(last):
                    total[entry] += table[start + entry * step]
            for entry in range(last):
                if total[entry] < least[first + entry]:
                    least[first + entry] = total[entry]
                    best[first + entry] = value
        for dimension in range(dimensions - 2, -1, -1):
            index[dimension] += 1
            for number in range(tables):
                at[number] += strides[number, dimension]
            large_at += large_strides[dimension]
            if index[dimension] < shape[dimension]:
                break
            for number in range(tables):
                at[number] -= strides[number, dimension] * shape[dimension]
            large_at -= large_strides[dimension] * shape[dimension]
            index[dimension] = 0
