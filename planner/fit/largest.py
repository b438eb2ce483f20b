"""The largest of some values that meets a criterion, by bisection, with a scan of what bisection skipped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: The most values that are tried one by one after a bisection.
_SCANNED = 32


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest value that meets a criterion.

    Args:
        value: the value; None if none was found.
        proven: whether every larger value was tried and fails; otherwise larger ones fail if all values above one
            that fails do.
        monotone: whether no value that was tried fails below one that meets the criterion.
    """

    value: int | None
    proven: bool
    monotone: bool


def largest(values: Sequence[int], meets: Callable[[int], bool]) -> Largest:
    """Find the largest value that meets a criterion.

    Args:
        values: ascending.
        meets: says whether a value meets the criterion; called once for each value that is tried.
    """
    tried: dict[int, bool] = {}

    def ask(place: int) -> bool:
        if place not in tried:
            tried[place] = meets(values[place])
        return tried[place]

    low, high = -1, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if ask(middle) else (low, middle)
    above = range(len(values) - 1, low, -1)
    if len(above) - sum(place in above for place in tried) <= _SCANNED:
        skipped = [place for place in above if place not in tried]
        low = next((place for place in skipped if ask(place)), low)
    proven = all(place in tried for place in range(low + 1, len(values)))
    monotone = all(met for place, met in tried.items() if place < low)
    return Largest(values[low] if low >= 0 else None, proven, monotone)
