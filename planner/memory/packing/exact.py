"""Exact placement of a few boxes, by trying every placement in which no box can be moved down."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.jit import kernel

Ints = NDArray[np.int64]


@kernel
def place_exactly(masks: Ints, sizes: Ints, segments: int, capacity: int, nodes: int, offsets: Ints) -> int:
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
    tops = np.zeros((count + 1, segments), np.int64)
    floor, chosen = np.zeros(count + 1, np.int64), np.full(count + 1, -1)
    placed = np.zeros(count, np.bool_)
    bytes_left = np.zeros(segments, np.int64)
    for b in range(count):
        for t in range(segments):
            if (masks[boxes[b]] >> t) & 1:
                bytes_left[t] += sizes[boxes[b]]
    depth = 0
    while depth >= 0:
        if depth == count:
            return 1
        if chosen[depth] >= 0:
            box = boxes[chosen[depth]]
            placed[chosen[depth]] = False
            for t in range(segments):
                if (masks[box] >> t) & 1:
                    bytes_left[t] += sizes[box]
        else:
            for t in range(segments):
                if bytes_left[t] > 0 and max(tops[depth, t], floor[depth]) + bytes_left[t] > capacity:
                    chosen[depth] = count  # no placement can follow
        next_box = -1
        for b in range(chosen[depth] + 1, count):
            if placed[b]:
                continue
            offset, box = 0, boxes[b]
            for t in range(segments):
                if (masks[box] >> t) & 1:
                    offset = max(offset, tops[depth, t])
            if (
                offset + sizes[box] > capacity
                or offset < floor[depth]
                or (offset == floor[depth] and depth > 0 and b < chosen[depth - 1])
            ):
                continue
            next_box = b
            break
        if next_box < 0:
            chosen[depth] = -1
            depth -= 1
            continue
        if nodes == 0:
            return -1
        nodes -= 1
        box = boxes[next_box]
        offsets[box] = floor[depth + 1] = offset
        for t in range(segments):
            tops[depth + 1, t] = tops[depth, t]
            if (masks[box] >> t) & 1:
                tops[depth + 1, t] = offset + sizes[box]
                bytes_left[t] -= sizes[box]
        chosen[depth], placed[next_box] = next_box, True
        depth += 1
    return 0
