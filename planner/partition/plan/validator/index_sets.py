"""Which elements of a dimension are meant, as masks: worked out index by index, not by intervals or atoms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from planner.errors import StowageError
from planner.partition.strategy import Split
from planner.partition.tdl import Index, Variable

Mask = NDArray[np.bool_]
#: Numbers as a sum with one term of each: (step, first, stop) stands for step * first, ..., step * (stop - 1).
Progressions = tuple[tuple[int, int, int], ...]
#: A dimension that is read over a wider range than this is not looked at index by index.
_WIDEST = 1 << 27


def share(size: int, workers: int, worker: int) -> tuple[int, int]:
    """The part of some indices that one of several workers has; parts differ by one index at most."""
    return size * worker // workers, size * (worker + 1) // workers


def part_of_range(outer: int, size: int, inner: int, workers: int, worker: int) -> Progressions:
    """The indices of a range (outer, size, inner) that one worker has if the middle factor is cut."""
    return (size * inner, 0, outer), (inner, *share(size, workers, worker)), (1, 0, inner)


def part_of_dimension(shape: tuple[int, ...], split: Split, workers: int, worker: int) -> Mask:
    """The indices of the split dimension that one worker has."""
    first, stop = share(split.size, workers, worker)
    digit = np.arange(shape[split.dimension]) // split.inner % split.size
    return (digit >= first) & (digit < stop)


def attained_places(place: Index, ranges: Mapping[Variable, Progressions], size: int) -> Mask:
    """Which indices of a dimension an index takes when some variables are restricted; those outside are left out.

    Raises:
        StowageError: the range is too wide to look at.
    """
    terms = [
        (coefficient * step, first, stop)
        for variable, coefficient in place.terms
        for step, first, stop in ranges.get(variable, ((1, 0, variable.size),))
    ]
    if any(stop <= first for _, first, stop in terms):
        return np.zeros(size, bool)
    low = place.constant + sum(min(step * first, step * (stop - 1)) for step, first, stop in terms)
    high = place.constant + sum(max(step * first, step * (stop - 1)) for step, first, stop in terms)
    if high - low > _WIDEST:
        raise StowageError(f"an index ranges over {high - low:,} places")
    line = np.zeros(high - low + 1, bool)
    line[0] = True
    for step, first, stop in terms:
        done, count = 1, stop - first
        while done < count and step:  # so far every sum of `done` multiples; as many more at once
            more = min(done, count - done)
            shift = abs(step) * more
            line[shift:] |= line[:-shift].copy()
            done += more
    places = np.flatnonzero(line) + low
    places = places[places % place.divisor == 0] // place.divisor
    found = np.zeros(size, bool)
    found[places[(places >= 0) & (places < size)]] = True
    return found


def of_whole_factors(place: Index, size: int) -> bool:
    """Whether an index takes every value below a size once, so that its variables are factors of the dimension."""
    if place.constant or place.divisor != 1:
        return False
    reached = 1
    for coefficient, count in sorted((coefficient, variable.size) for variable, coefficient in place.terms):
        if count > 1:
            if coefficient != reached:
                return False
            reached *= count
    return reached == size


def interval(mask: Mask) -> Mask:
    """All indices from the first to the last of a mask."""
    places = np.flatnonzero(mask)
    found = np.zeros_like(mask)
    if places.size:
        found[places[0] : places[-1] + 1] = True
    return found


def united(masks: Iterable[Mask]) -> Mask:
    """The indices that are in any of several masks."""
    first, *rest = masks
    found = first.copy()
    for mask in rest:
        found |= mask
    return found
