"""The largest of some values that meets a criterion, by bisection, with a scan of what bisection skipped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

#: The most values that are tried one by one after a bisection.
MOST_SCANNED = 32
#: The farthest from where an answer is expected that it is looked for, by doubling the distance.
_NEAR = 4


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest value that meets a criterion.

    Args:
        value: the value; None if none was found. It and the next larger one were captured, or the smallest for None.
        proven: whether every larger value was captured and fails; otherwise larger ones fail if all values above one
            that fails do.
        monotone: whether no value that was tried fails below one that meets the criterion.
    """

    value: int | None
    proven: bool
    monotone: bool


def largest(
    values: Sequence[int],
    meets: Callable[[int], bool],
    surely: Callable[[int], bool] | None = None,
    *,
    first: int | None = None,
    most_scanned: int = MOST_SCANNED,
) -> Largest:
    """Find the largest value that meets a criterion.

    Args:
        values: ascending.
        meets: says whether a value meets the criterion; called at most once for a value.
        surely: says the same for certain where `meets` may be wrong, and is asked about the answer, the next larger
            value and all that are scanned; None if `meets` is certain.
        first: the place where the answer is expected, near which it is looked for before the search begins in the
            middle; -1 where the first value is expected to fail, None to begin in the middle at once.
        most_scanned: so many values above the answer that bisection skipped are tried; if there are more, none is.
    """
    tried: dict[int, bool] = {}
    sure: dict[int, bool] = tried if surely is None else {}

    def ask(place: int) -> bool:
        if place not in tried:
            tried[place] = meets(values[place])
        return tried[place]

    def make_sure(place: int) -> bool:
        if place not in sure:
            sure[place] = meets(values[place]) if surely is None else surely(values[place])
            tried[place] = sure[place]
        return sure[place]

    low, high = -1, len(values)
    reach = 1
    while high - low > 1:
        if first is None or reach > _NEAR or (low >= 0 and high < len(values)):
            place = (low + high) // 2
        elif not tried:
            place = min(max(first, 0), len(values) - 1)
        else:
            place = max(high - reach, 0) if low < 0 else min(low + reach, len(values) - 1)
            reach *= 2
        low, high = (place, high) if ask(place) else (low, place)
    for place in (low, low + 1):
        if 0 <= place < len(values):
            make_sure(place)
    above = range(len(values) - 1, low, -1)
    if len(above) - sum(place in above for place in sure) <= most_scanned:
        skipped = [place for place in above if place not in sure]
        low = next((place for place in skipped if make_sure(place)), low)
    proven = all(place in sure for place in range(low + 1, len(values)))
    monotone = all(met for place, met in tried.items() if place < low)
    return Largest(values[low] if low >= 0 else None, proven, monotone)
