"""Whose turn it is among the families of a search: each is tried first, then the faster ones get more turns."""

from __future__ import annotations

from collections.abc import Sequence

from planner.swap.search.family import Family

#: Turns that the family with the fastest plan gets for each turn of one whose plan is clearly slower.
_LEADER = 8
#: And one whose plan is no more than this share slower gets for it.
_CLOSE, _NEAR = 2, 1.01


def next_family(families: Sequence[Family]) -> Family:
    """The family that gets the next turn: the one with the fewest for its weight.

    It depends on search steps and step times alone, never on the clock, so that the same seed and number of evaluations
    give the same plan.

    Args:
        families: those that may still find the fastest plan; not empty.
    """
    best = min(family.promises for family in families)

    def weighed(family: Family) -> float:
        seconds = family.promises
        weight = _LEADER if seconds <= best else _CLOSE if seconds <= best * _NEAR else 1
        return (family.turns + 1) / weight

    return min(families, key=weighed)
