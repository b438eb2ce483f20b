"""Variable elimination: the exact least sum of costs that each depend on a few variables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.errors import StowageError
from planner.partition.search.factors.elimination_order import Elimination, Term, eliminate_in_order
from planner.partition.search.factors.elimination_step import LeastOf, Scratch, least_over
from planner.partition.search.factors.min_sum import Costs

#: No more entries are gone through to eliminate a variable.
_MOST_ENTRIES = 100_000_000
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

    def alone(self) -> LeastOf:
        """The least of these costs and no others."""
        return LeastOf(self.variables, (self.costs,))


class Eliminated:
    """Costs from which variables have been eliminated as long as that takes small tables.

    GroupsAndOps of the sum that have equal tables in the same places are worked out once.

    Args:
        choices: how many values each variable has, at least 1.
        scopes: per term of the sum, the variables that it depends on, in ascending order, and a key that terms with
            equal tables have in common.
        costs: gives the costs of a term by its number; asked for those alone that are needed.
        most: no more entries are gone through to eliminate a variable.

    Attributes:
        constant: what the eliminated variables cost by themselves.
        given: the numbers of the terms that are left.
        made: the tables that took the place of others, and are left.
        refused: the variables of the smallest table that was too large; empty if all variables are eliminated.
    """

    def __init__(
        self, choices: Sequence[int], scopes: Sequence[Scope], costs: Callable[[int], LeastOf], most: float
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
        known: dict[int, tuple[Costs, ...]] = {}
        scratch = Scratch()

        def term(one: Term) -> LeastOf:
            if one.key not in known:
                known[one.key] = costs(number_of[one.key]).costs
            return LeastOf(one.variables, known[one.key])

        for place, step in enumerate(self._steps):
            if step.new:
                made = step.made
                least, best = least_over(step.variable, made.variables, list(map(term, step.terms)), choices, scratch)
                known[made.key], self._best[made.key] = (least,), best
                for each in step.terms:
                    if last[each.key] == place:
                        known.pop(each.key, None)
        self.constant = sum(float(term(Term((), key)).whole(choices).item()) for key in rest.constant)
        self.given = [number for number in rest.terms if number < len(given)]
        self.made = [
            CostTable(each.variables, known[each.key][0]) for number, each in rest.terms.items() if number >= len(given)
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
    eliminated = Eliminated(choices, scopes, lambda number: tables[number].alone(), most)
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
