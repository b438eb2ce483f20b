"""The least sum over the ways of splitting an op, for every combination of what is around it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from planner.jit import kernel

Costs = NDArray[np.float64]
#: The cost of what is not possible.
FORBIDDEN = 1e30


def min_sum(parts: Sequence[Costs]) -> Costs:
    """The least sum over the first index of all parts, by their other indices.

    Args:
        parts: one array for each variable, of the shape (ways, values).

    Returns:
        An array with one dimension for each part.
    """
    by_size = sorted(range(len(parts)), key=lambda place: parts[place].shape[1])  # long rows are quick to go through
    joined = [parts[place] for place in by_size]
    shape = [part.shape[1] for part in joined]
    while len(joined) > 3:  # the first parts are joined into one of all their combinations
        first, second = joined[:2]
        joined[:2] = [(first[:, :, None] + second[:, None, :]).reshape(len(first), -1)]
    while len(joined) < 3:
        joined.insert(0, np.zeros((len(parts[0]), 1)))
    first, second, third = (np.ascontiguousarray(part, np.float64) for part in joined)
    least = np.empty((first.shape[1], second.shape[1], third.shape[1]))
    _min_sum(first, second, third, least)
    return least.reshape(shape).transpose(np.argsort(by_size))


@kernel
def _min_sum(first: Costs, second: Costs, third: Costs, least: Costs) -> None:
    """Take the least over the ways; those that cost at least more than another costs at most are passed over."""
    ways, last = third.shape
    lowest, highest = np.empty(ways), np.empty(ways)
    for way in range(ways):
        lowest[way], highest[way] = third[way].min(), third[way].max()
    start = np.empty(ways)
    for a in range(first.shape[1]):
        for b in range(second.shape[1]):
            most = np.inf
            for way in range(ways):
                start[way] = first[way, a] + second[way, b]
                most = min(most, start[way] + highest[way])
            row = least[a, b]
            row[:] = np.inf
            for way in range(ways):
                here = start[way]
                if here + lowest[way] <= most:
                    for c in range(last):
                        row[c] = min(row[c], here + third[way, c])
