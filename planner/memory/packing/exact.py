"""Exact placement of a few boxes, by trying every placement in which no box can be moved down."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.jit import kernel

Ints = NDArray[np.int64]


@kernel
def stack(masks: Ints, sizes: Ints, segments: int, capacity: int, nodes: int, offsets: Ints) -> int:
    """Place boxes below a height, each at the bottom or on top of another.

    Boxes are placed lowest first, those at equal offsets in a fixed order, so that no placement is tried twice and
    later boxes are never lower.

    Args:
        masks: `[boxes]`, bit `t` is set where a box is alive in segment `t`; a box that is never alive takes no room.
        sizes: `[boxes]`, bytes.
        segments: number of time segments, at most 62.
        capacity: bytes.
        nodes: how many boxes to place at most, counting those that are removed again.
        offsets: `[boxes]`, filled if they fit.

    Returns:
        1 if they fit, 0 if they do not, -1 if that many nodes do not decide it.
    """
    boxes = np.flatnonzero((masks != 0) & (sizes > 0))
    boxes = boxes[np.argsort(-sizes[boxes], kind="mergesort")]
    count = boxes.shape[0]
    heights = np.zeros((count + 1, segments), np.int64)
    floor, chosen = np.zeros(count + 1, np.int64), np.full(count + 1, -1)
    placed = np.zeros(count, np.bool_)
    left = np.zeros(segments, np.int64)
    for b in range(count):
        for t in range(segments):
            if (masks[boxes[b]] >> t) & 1:
                left[t] += sizes[boxes[b]]
    d = 0
    while d >= 0:
        if d == count:
            return 1
        if chosen[d] >= 0:
            r = boxes[chosen[d]]
            placed[chosen[d]] = False
            for t in range(segments):
                if (masks[r] >> t) & 1:
                    left[t] += sizes[r]
        else:
            for t in range(segments):
                if left[t] > 0 and max(heights[d, t], floor[d]) + left[t] > capacity:
                    chosen[d] = count  # no placement can follow
        found = -1
        for b in range(chosen[d] + 1, count):
            if placed[b]:
                continue
            at, r = 0, boxes[b]
            for t in range(segments):
                if (masks[r] >> t) & 1:
                    at = max(at, heights[d, t])
            if at + sizes[r] > capacity or at < floor[d] or (at == floor[d] and d > 0 and b < chosen[d - 1]):
                continue
            found = b
            break
        if found < 0:
            chosen[d] = -1
            d -= 1
            continue
        if nodes == 0:
            return -1
        nodes -= 1
        r = boxes[found]
        offsets[r] = floor[d + 1] = at
        for t in range(segments):
            heights[d + 1, t] = heights[d, t]
            if (masks[r] >> t) & 1:
                heights[d + 1, t] = at + sizes[r]
                left[t] -= sizes[r]
        chosen[d], placed[found] = found, True
        d += 1
    return 0
