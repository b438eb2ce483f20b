"""Giving every residency of a draft an offset."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from planner.swap.draft import Draft, Stays
from planner.swap.problem import Bytes, Ints, Problem


class Boxes(NamedTuple):
    """Rectangles of slots x bytes; `of[r]` is the box of residency `r`, `fixed` an offset given in advance or -1."""

    lower: Ints
    upper: Ints
    bytes: Bytes
    fixed: Bytes
    of: Ints


def boxes_of(problem: Problem, draft: Draft, stays: Stays) -> Boxes:
    """Join residencies that take over each other's memory, and give what stays over the step's end its home.

    A storage on the device at both ends of the step has the same offset there. These homes lie at the bottom, what
    is never away lowest.
    """
    flow, n, count = problem.flow, problem.ops, len(stays.storage)
    first, last = np.full(problem.storages, -1, np.int64), np.full(problem.storages, -1, np.int64)
    last[stays.storage] = np.arange(count)
    first[stays.storage[::-1]] = np.arange(count)[::-1]
    box = np.arange(count, dtype=np.int32)
    upper = stays.stop.copy()
    for slot in np.flatnonzero(draft.inherits >= 0):
        donor, heir = last[draft.inherits[slot]], first[flow.creates[draft.order[slot]]]
        box[heir] = box[donor]
        upper[box[donor]] = upper[heir]
    chosen, of = np.unique(box, return_inverse=True)
    fixed = np.full(len(chosen), -1, np.int64)
    homed = np.flatnonzero(draft.resident & flow.stateful & (first >= 0))
    leaves, returns = stays.stop[first[homed]], stays.start[last[homed]]
    away = np.where(first[homed] == last[homed], 0, returns - leaves)
    base = 0
    for storage in homed[np.argsort(away, kind="stable")]:
        fixed[of[first[storage]]] = fixed[of[last[storage]]] = base
        base += int(flow.bytes[storage])
    sizes = flow.bytes[stays.storage[chosen]]
    return Boxes(stays.start[chosen], upper[chosen], sizes, fixed, of.astype(np.int32))


def place(boxes: Boxes, capacity: int, rounds: int = 40) -> Bytes | None:
    """Find offsets within a capacity, or None.

    Several orders are tried by first fit; then those that came to lie too high go earlier, again and again
    (squeaky-wheel optimization, Joslin and Clements, JAIR 1999).

    Args:
        boxes: what to place.
        capacity: bytes.
        rounds: how often to reorder.
    """
    lower, sizes = boxes.lower, boxes.bytes
    span = boxes.upper - lower
    best: Ints | None = None
    least = 0
    for keys in ((-sizes, lower), (lower, -sizes), (lower, -sizes * span), (lower, -span)):
        order = np.lexsort(keys).astype(np.int32)
        offsets = first_fit(boxes, order)
        height = int((offsets + sizes).max(initial=0))
        if height <= capacity:
            return offsets
        if best is None or height < least:
            best, least = order, height
    assert best is not None
    return squeak(boxes, best, capacity, rounds)


def squeak(boxes: Boxes, order: Ints, capacity: int, rounds: int) -> Bytes | None:
    """Let boxes above the capacity go earlier until all fit."""
    position = np.empty(len(order))
    position[order] = np.arange(len(order))
    for _ in range(rounds):
        offsets = first_fit(boxes, order)
        high = offsets + boxes.bytes > capacity
        if not high.any():
            return offsets
        position[high] *= 0.5
        order = np.argsort(position, kind="stable").astype(np.int32)
        position[order] = np.arange(len(order))
    return None


@njit(cache=True, nogil=True)
def first_fit(boxes: Boxes, order: Ints) -> Bytes:
    """Give each box in turn the lowest offset at which it meets no box placed before; fixed ones are there already."""
    count = order.shape[0]
    offset = boxes.fixed.copy()
    placed = np.empty(count, np.int32)
    high = 0
    for turn in range(2):
        for b in order:
            if (boxes.fixed[b] >= 0) != (turn == 0):
                continue
            if turn == 0:
                at = offset[b]
            else:
                at = 0
                for p in range(high):
                    other = placed[p]
                    if boxes.lower[other] < boxes.upper[b] and boxes.lower[b] < boxes.upper[other]:
                        if offset[other] - at >= boxes.bytes[b]:
                            break
                        at = max(at, offset[other] + boxes.bytes[other])
                offset[b] = at
            p = high
            while p > 0 and offset[placed[p - 1]] > at:
                placed[p] = placed[p - 1]
                p -= 1
            placed[p] = b
            high += 1
    return offset
