"""A binary heap with the largest key on top, over arrays of its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from planner.swap.problem import Ints, Seconds


class Queue(NamedTuple):
    """Entries of a heap: a key, an item, and the version of the item when it was queued."""

    key: Seconds
    item: Ints
    version: Ints


def blank_queue(room: int) -> Queue:
    """Room for so many entries."""
    return Queue(np.empty(room), np.empty(room, np.int32), np.empty(room, np.int32))


@njit(cache=True, nogil=True)
def push(queue: Queue, size: int, key: float, item: int, version: int) -> int:
    """Add an entry; returns how many there are."""
    keys, items, versions = queue
    at = size
    while at > 0:
        above = (at - 1) // 2
        if keys[above] > key or (keys[above] == key and items[above] <= item):
            break
        keys[at], items[at], versions[at] = keys[above], items[above], versions[above]
        at = above
    keys[at], items[at], versions[at] = key, item, version
    return size + 1


@njit(cache=True, nogil=True)
def pop_last(queue: Queue, size: int) -> tuple[int, int, int]:
    """Take the entry of largest key; returns its item and version, and how many are left."""
    keys, items, versions = queue
    item, version = items[0], versions[0]
    size -= 1
    key, moved, moved_version, at = keys[size], items[size], versions[size], 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        right = below + 1
        if right < size and (keys[right] > keys[below] or (keys[right] == keys[below] and items[right] < items[below])):
            below = right
        if key > keys[below] or (key == keys[below] and moved <= items[below]):
            break
        keys[at], items[at], versions[at] = keys[below], items[below], versions[below]
        at = below
    keys[at], items[at], versions[at] = key, moved, moved_version
    return int(item), int(version), size
