"""At most how much cheaper an op is if it has a copy of an input, for all states of the copy at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from planner.jit import kernel
from planner.partition.search.factors.min_sum import Costs

Ints = NDArray[np.int64]


def copy_gains(
    around: Sequence[Costs], own: Costs, saved: Costs, wanting: Sequence[Sequence[int]]
) -> tuple[Costs, Costs]:
    """By state of a copy and option of its group, how much a copy saves at most, whatever is around the op.

    Args:
        around: for every other variable, the costs by way and value.
        own: the costs by way and option of the group.
        saved: `[states, options]`, what is not paid with a copy.
        wanting: per state, the ways that want the input so; every way wants it in one state.

    Returns:
        `[states, options]`, the most that it saves, and `[options]`, the most that the op costs without copies.
    """
    ways = np.concatenate([np.asarray(rows, np.int64) for rows in wanting])
    starts = np.cumsum([0, *map(len, wanting)])
    states = np.repeat(np.arange(len(wanting)), np.diff(starts))
    joined = np.zeros((len(own), 1))
    for part in around:
        joined = (joined[:, :, None] + part[:, None, :]).reshape(len(own), -1)
    gains, most = np.full(saved.shape, -np.inf), np.full(saved.shape[1], -np.inf)
    ordered = own[ways]
    _copy_gains(
        np.ascontiguousarray(joined[ways].T), np.ascontiguousarray(ordered.T),
        np.ascontiguousarray((ordered - saved[states]).T), starts, gains, most,
    )  # fmt: skip
    return gains, most


@kernel
def _copy_gains(around: Costs, own: Costs, cheaper: Costs, starts: Ints, gains: Costs, most: Costs) -> None:
    states = starts.shape[0] - 1
    with_copy = np.empty(states)
    for here in range(around.shape[0]):
        for option in range(own.shape[0]):
            least = np.inf
            for state in range(states):
                low = np.inf
                for way in range(starts[state], starts[state + 1]):
                    least = min(least, around[here, way] + own[option, way])
                    low = min(low, around[here, way] + cheaper[option, way])
                with_copy[state] = low
            most[option] = max(most[option], least)
            for state in range(states):
                gains[state, option] = max(gains[state, option], least - with_copy[state])
