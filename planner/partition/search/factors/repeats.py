"""Parts of a sum that are alike, such as the layers of a model: one of them stands for all.

Variables that no other variable looks like separate the rest into parts. Given their values, every part can be chosen
by itself, so parts that are the same function of them may all be chosen alike: one of them counts as often as there are
parts. Color refinement finds candidates, and every term of a candidate is held against its counterpart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.partition.search.factors.eliminate import Scope

Hashes = NDArray[np.uint64]
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Repeats:
    """Who stands for whom.

    Args:
        variables: per variable, the one whose value it takes; itself if it is not repeated.
        terms: per term, the one that stands for it.
    """

    variables: list[int]
    terms: list[int]

    def counted(self) -> dict[int, int]:
        """The terms that stand for themselves, and how often they count."""
        times = Counter(self.terms)
        return {term: times[term] for term in sorted(times)}


def find_repeats(choices: Sequence[int], scopes: Sequence[Scope]) -> Repeats:
    """Find the parts of a sum that are alike.

    Args:
        choices: how many values each variable has.
        scopes: per term, the variables that it depends on, in ascending order, and a key that terms with equal tables
            have in common.
    """
    colors, term_colors = _colors(choices, scopes)
    alone = np.bincount(colors, minlength=1)[colors] == 1
    found = Repeats(list(range(len(choices))), list(range(len(scopes))))
    alike: dict[Hashable, list[int]] = {}
    for terms in _parts(scopes, alone):
        terms.sort(key=lambda term: (term_colors[term], term))
        look = tuple(term_colors[term] for term in terms)
        first = alike.setdefault(look, terms)
        if first is not terms and (pairs := _counterparts(first, terms, scopes, alone)) is not None:
            for mine, theirs in pairs.items():
                found.variables[mine] = theirs
            for mine, theirs in zip(terms, first, strict=True):
                found.terms[mine] = theirs
    return found


def _counterparts(
    first: Sequence[int], second: Sequence[int], scopes: Sequence[Scope], alone: NDArray[np.bool_]
) -> dict[int, int] | None:
    """By variable of one part that of another which it corresponds to; None if they are not the same function."""
    pairs: dict[int, int] = {}
    for theirs, mine in zip(first, second, strict=True):
        (them, their_key), (me, my_key) = scopes[theirs], scopes[mine]
        if my_key != their_key or len(me) != len(them):
            return None
        for one, other in zip(me, them, strict=True):
            if alone[one] or alone[other]:
                if one != other:
                    return None
            elif pairs.setdefault(one, other) != other:
                return None
    return pairs if len(set(pairs.values())) == len(pairs) else None


def _parts(scopes: Sequence[Scope], alone: NDArray[np.bool_]) -> list[list[int]]:
    """The terms that hang together by variables that are not alone."""
    parent = list(range(len(alone)))

    def root(variable: int) -> int:
        while parent[variable] != variable:
            parent[variable] = parent[parent[variable]]
            variable = parent[variable]
        return variable

    inner = [[variable for variable in variables if not alone[variable]] for variables, _ in scopes]
    for variables in inner:
        for other in variables[1:]:
            parent[root(other)] = root(variables[0])
    found: dict[int, list[int]] = {}
    for term, variables in enumerate(inner):
        if variables:
            found.setdefault(root(variables[0]), []).append(term)
    return list(found.values())


def _colors(choices: Sequence[int], scopes: Sequence[Scope]) -> tuple[NDArray[np.int64], list[int]]:
    """Numbers for variables and terms; those that differ are told apart by what is around them."""
    keys: dict[Hashable, int] = {}
    numbers = np.array([keys.setdefault(key, len(keys)) for _, key in scopes], np.uint64)
    lengths = np.array([len(variables) for variables, _ in scopes], np.int64)
    legs = np.array([variable for variables, _ in scopes for variable in variables], np.int64)
    term_of = np.repeat(np.arange(len(scopes)), lengths)
    first = np.cumsum(lengths) - lengths
    places = (np.arange(len(legs)) - np.repeat(first, lengths)).astype(np.uint64) * _GOLDEN
    variables, terms = _mixed(np.array(choices, np.uint64)), _mixed(numbers)
    count = 0
    while (told_apart := len(np.unique(variables))) > count:
        count = told_apart
        around = np.zeros(len(scopes), np.uint64)
        np.add.at(around, term_of, _mixed(variables[legs] + places))
        terms = _mixed(numbers * _GOLDEN + _mixed(around))
        around = np.zeros(len(choices), np.uint64)
        np.add.at(around, legs, _mixed(terms[term_of] + places))
        variables = _mixed(variables + _mixed(around))
    _, colors = np.unique(variables, return_inverse=True)
    return colors, [int(term) for term in terms]


def _mixed(numbers: Hashes) -> Hashes:
    """Hashes that look like random numbers, so that their sum tells sets apart."""
    numbers = numbers + _GOLDEN
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _MIX[0]
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _MIX[1]
    return numbers ^ (numbers >> np.uint64(31))
