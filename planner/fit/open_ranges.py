"""The end of a range that has none: where doubling first comes to a value that does not fit."""

from __future__ import annotations

from collections.abc import Callable

from planner.errors import StowageError

#: Values beyond this are not tried.
_LARGEST = 2**30


def closed_range(name: str, first: int, fits: Callable[[int], bool]) -> range:
    """All values from the first one to the first of its doubles that does not fit.

    Args:
        name: of the argument.
        first: the first value.
        fits: says whether a value fits at all.

    Raises:
        StowageError: the argument does not take the memory to end it.
    """
    last = first
    while fits(last):
        last *= 2
        if last > _LARGEST:
            raise StowageError(f"{name}={last // 2} still fits; name a last value, as in range(1, 65)")
    return range(first, last + 1)
