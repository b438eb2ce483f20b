"""Which values an index takes when its variables are restricted to intervals."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod

import numpy as np

from planner.partition.tdl.index import Index, Variable

#: The first value, and the one after the last.
Range = tuple[int, int]
#: More values than this are bounded by arithmetic on intervals instead of being looked at one by one.
_MOST_VALUES = 1 << 20


def attained(place: Index, ranges: Mapping[Variable, Range], size: int | None) -> Range:
    """The smallest and the largest value that an index takes, both inclusive; nothing is (0, -1).

    Args:
        place: the index.
        ranges: restrictions of its variables.
        size: only values from 0 to below this count; None if all do.
    """
    spans = tuple((coefficient, *ranges.get(variable, (0, variable.size))) for variable, coefficient in place.terms)
    return _attained(spans, place.constant, place.divisor, size)


@lru_cache(maxsize=1 << 16)
def _attained(spans: tuple[tuple[int, int, int], ...], constant: int, divisor: int, size: int | None) -> Range:
    if any(stop <= start for _, start, stop in spans):
        return 0, -1
    if (divisor == 1 and size is None) or prod(stop - start for _, start, stop in spans) > _MOST_VALUES:
        ends = [sorted((factor * start, factor * (stop - 1))) for factor, start, stop in spans]
        low, high = constant + sum(end[0] for end in ends), constant + sum(end[1] for end in ends)
        first, last = -(-low // divisor), high // divisor
        return (first, last) if size is None else (max(first, 0), min(last, size - 1))
    values = np.array([constant])
    for factor, start, stop in spans:
        values = np.unique(np.add.outer(values, factor * np.arange(start, stop)))
    values = values[values % divisor == 0] // divisor
    if size is not None:
        values = values[(values >= 0) & (values < size)]
    return (int(values.min()), int(values.max())) if values.size else (0, -1)
