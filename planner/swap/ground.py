"""Device memory during a walk: who lies where, which holes there are, and which neighbours could make room."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from planner.swap.problem import Bytes, Ints, Seconds


class Ground(NamedTuple):
    """Residents by offset, and scratch for choosing among them.

    `line` holds the storages on the device by ascending `offset`; `fresh[s]` is the slot in which `s` was laid down.
    `left[k]` is the offset that gap `k` leaves; `wanted` and `score` are scratch per storage.
    """

    line: Ints
    offset: Bytes
    fresh: Ints
    left: Bytes
    wanted: Ints
    score: Seconds


def blank_ground(storages: int, gaps: int) -> Ground:
    """Scratch for a walk over this many storages."""
    line, fresh, wanted = (np.empty(storages, np.int32) for _ in range(3))
    return Ground(line, np.zeros(storages, np.int64), fresh, np.empty(gaps, np.int64), wanted, np.empty(storages))


@njit(cache=True, nogil=True)
def put(ground: Ground, living: int, s: int, at: int) -> int:
    """Lay a storage down; returns how many there are now."""
    line, offset = ground.line, ground.offset
    offset[s] = at
    p = living
    while p > 0 and offset[line[p - 1]] > at:
        line[p] = line[p - 1]
        p -= 1
    line[p] = s
    return living + 1


@njit(cache=True, nogil=True)
def find(ground: Ground, living: int, s: int) -> int:
    """The position of a resident in the line."""
    low, high = 0, living
    while low < high:
        middle = (low + high) // 2
        if ground.offset[ground.line[middle]] < ground.offset[s]:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def lift(ground: Ground, living: int, first: int, last: int) -> int:
    """Take residents out of the line, from one position to another; returns how many are left."""
    for p in range(last + 1, living):
        ground.line[p - (last + 1 - first)] = ground.line[p]
    return living - (last + 1 - first)


@njit(cache=True, nogil=True)
def hole(ground: Ground, living: int, sizes: Bytes, memory: int, size: int, top: bool) -> int:
    """An offset where a storage fits: the tightest hole's bottom, or the upper end of the highest one; -1 for none."""
    at, tightest, below = -1, 2**62, 0
    for a in range(living + 1):
        above = ground.offset[ground.line[a]] if a < living else memory
        if above - below >= size:
            if top:
                at = above - size
            elif above - below < tightest:
                at, tightest = below, above - below
        if a < living:
            below = above + sizes[ground.line[a]]
    return at


@njit(cache=True, nogil=True)
def window(
    ground: Ground, living: int, sizes: Bytes, memory: int, size: int, pinned: Ints, i: int
) -> tuple[int, int, float]:
    """The neighbours whose leaving makes room, of greatest least score; -1 where what slot `i` needs is in the way."""
    line, offset = ground.line, ground.offset
    best, first, last = -np.inf, -1, -1
    for a in range(living):
        below = offset[line[a - 1]] + sizes[line[a - 1]] if a > 0 else 0
        least = np.inf
        for b in range(a, living):
            s = line[b]
            if pinned[s] == i or ground.fresh[s] == i:
                break
            least = min(least, ground.score[s])
            if least <= best:
                break
            above = offset[line[b + 1]] if b + 1 < living else memory
            if above - below >= size:
                best, first, last = least, a, b
                break
    return first, last, best
