"""The end of a range that has none: where doubling first comes to a value that does not fit or fails."""

from __future__ import annotations

from collections.abc import Callable

from planner.errors import StowageError
from planner.fit.failing_sizes import last_working

#: Values beyond this are not tried.
_LARGEST = 2**30


class StillFitsError(StowageError):
    """The largest value that is tried still fits, so that a range needs a last one.

    Args:
        name: of the argument.
        value: the largest value that was tried.
        advice: how to name a last value.
    """

    def __init__(self, name: str, value: int, advice: str) -> None:
        super().__init__(f"{name}={value} still fits; name a last value, as in {advice}")
        self.name, self.value = name, value


def closed_range(name: str, first: int, fits: Callable[[int], bool], works: Callable[[int], bool]) -> range:
    """All values from the first one to the first of its doubles that does not fit.

    If the step of one of these cannot be made, the range ends at the last that can, found by bisection.

    Args:
        name: of the argument.
        first: the first value, which works.
        fits: says whether a value that works fits at all.
        works: says whether the step of a value can be made and captured.

    Raises:
        StillFitsError: the argument does not take the memory to end it.
    """
    last = first
    while fits(last):
        if 2 * last > _LARGEST:
            raise StillFitsError(name, last, f'over={{"{name}": range({first}, {64 * first + 1})}}')
        if not works(2 * last):
            return range(first, last_working(works, last, 2 * last) + 1)
        last *= 2
    return range(first, last + 1)
