"""Whose turn it is among the families of a search: each is tried, then the one ahead gets most turns."""

from __future__ import annotations

from collections.abc import Sequence

from planner.swap.search.family import Family

#: Turns of the family ahead, and of one no more than `_NEAR` slower, for each turn of one that is further behind.
_AHEAD, _CLOSE = 32, 16
_NEAR = 1.02
#: Of families whose step times differ by less than this, the one that is tried first is ahead.
_SAME = 1.001
#: Families whose bound is further above the least are tried after the others.
_FAR_BOUND = 1.01


def next_family(families: Sequence[Family]) -> Family:
    """The family that gets the next turn.

    At first each that may copy is tried once, those with much the lower bound before the others: where swapping alone
    cannot come near, recomputing is tried first. From then on, it is the family with the fewest turns for its weight.
    All depends on search steps and step times, never on the clock, so that the same seed and number of evaluations give
    the same plan.

    Args:
        families: those that may still find the fastest plan; not empty.
    """
    least = min(family.bound for family in families)
    in_order = sorted(families, key=lambda family: family.bound > least * _FAR_BOUND)
    for family in in_order:
        if family.turns == 0 and family.copies:
            return family
    best = min(family.promises for family in in_order)
    ahead = next(family for family in in_order if family.promises <= best * _SAME)

    def weighed(family: Family) -> float:
        weight = _AHEAD if family is ahead else _CLOSE if family.promises <= best * _NEAR else 1
        return (family.turns + 1) / weight

    return min(in_order, key=weighed)
