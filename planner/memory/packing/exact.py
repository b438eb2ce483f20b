"""Placing a few boxes by trying every placement that is pushed down."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.kernels import kernel

Ints = NDArray[np.int64]


@kernel
def stack(masks: Ints, sizes: Ints, segments: int, capacity: int, nodes: int, offsets: Ints) -> int:
    """Place boxes below a height, each at the bottom or on top of another.

    Boxes are laid down lowest first, those equally low in the order of their numbers, so that no placement comes
    twice and what is still to come lies no lower.

    Args:
        masks: `[boxes]`, bit `t` is set where a box is alive in segment `t`; a box that never is takes no room.
        sizes: `[boxes]`, bytes.
        segments: of time, at most 62.
        capacity: bytes.
        nodes: how many boxes to lay down at most, taken back ones too.
        offsets: `[boxes]`, filled if they fit.

    Returns:
        1 if they fit, 0 if they do not, -1 if that many nodes do not tell.
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
                    chosen[d] = count  # no placement comes of this
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
