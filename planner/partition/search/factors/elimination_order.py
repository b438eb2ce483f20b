"""Variables eliminated one after another, that with the smallest table first; equal eliminations are found once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import inf, prod


@dataclass(frozen=True, slots=True)
class Term:
    """A table whose numbers are known by a key: equal ones have one."""

    variables: tuple[int, ...]
    key: int


@dataclass(frozen=True, slots=True)
class Elimination:
    """A variable, the terms that depend on it, all their variables, and the term without it that takes their place.

    Args:
        new: whether no other elimination before it was equal, so that its table has to be made.
    """

    variable: int
    terms: list[Term]
    around: tuple[int, ...]
    made: Term
    new: bool


@dataclass(frozen=True, slots=True)
class Rest:
    """What no elimination took up.

    Args:
        terms: the terms that depend on variables, by number: those given have their place, those made come after.
        constant: the keys of the terms that depend on none.
        refused: the variables of the smallest table that would have been too large; empty if there was none.
    """

    terms: dict[int, Term]
    constant: list[int]
    refused: tuple[int, ...]


def eliminate_in_order(
    choices: Sequence[int], given: Sequence[Term], take: Callable[[Elimination], None], most: float = inf
) -> Rest:
    """Eliminate one variable after another, that with the smallest table first.

    Args:
        choices: how many values each variable has.
        given: the terms, whose keys count from 0.
        take: is called with every elimination.
        most: a variable stays whose elimination goes through more entries, and so do all after it.
    """
    alive = dict(enumerate(given))
    first_key = max((term.key for term in given), default=-1) + 1
    using: list[set[int]] = [set() for _ in choices]
    for number, term in alive.items():
        for variable in term.variables:
            using[variable].add(number)
    constant = [alive.pop(number).key for number, term in enumerate(given) if not term.variables]
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
        size, variable, seen = heappop(queue)
        if seen != changes[variable]:
            continue
        if size > most:
            return Rest(alive, constant, scope(variable))
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
        made = Term(rest, known.setdefault(look, first_key + len(known)))
        take(Elimination(variable, terms, around, made, new))
        for other in rest:
            using[other] = {each for each in using[other] if each in alive}
        if not rest:
            constant.append(made.key)
            continue
        alive[number] = made
        for other in rest:
            using[other].add(number)
            changes[other] += 1
        number += 1
        for other in rest:
            heappush(queue, (entries(other), other, changes[other]))
    return Rest(alive, constant, ())
