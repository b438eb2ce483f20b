"""Device memory during a walk: who lies where, which holes there are, and which neighbours could make room."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.kernels import kernel
from planner.swap.problem.problem import Bytes, Ints, Seconds


class Ground(NamedTuple):
    """Residents by offset, and scratch for choosing among them.

    `line` holds the storages on the device by ascending `offset`; `fresh[s]` is the slot in which `s` was laid down,
    `laid[s]` the last one in which that was with all an op needs. `left[k]` is the offset that gap `k` leaves.
    `wanted`, `score` and `rising` are scratch per storage.
    """

    line: Ints
    offset: Bytes
    fresh: Ints
    laid: Ints
    left: Bytes
    wanted: Ints
    score: Seconds
    rising: Ints


def blank_ground(storages: int, gaps: int) -> Ground:
    """Scratch for a walk over this many storages."""
    line, fresh, laid, wanted, rising = (np.empty(storages, np.int32) for _ in range(5))
    offset, left = np.zeros(storages, np.int64), np.empty(gaps, np.int64)
    return Ground(line, offset, fresh, laid, left, wanted, np.empty(storages), rising)


@kernel
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


@kernel
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


@kernel
def lift(ground: Ground, living: int, first: int, last: int) -> int:
    """Take residents out of the line, from one position to another; returns how many are left."""
    for p in range(last + 1, living):
        ground.line[p - (last + 1 - first)] = ground.line[p]
    return living - (last + 1 - first)


@kernel
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


@kernel
def window(
    ground: Ground, living: int, sizes: Bytes, memory: int, size: int, pinned: Ints, i: int
) -> tuple[int, int, float]:
    """The neighbours whose leaving makes room, of greatest least score; -1 where what slot `i` needs is in the way."""
    line, offset, score, rising = ground.line, ground.offset, ground.score, ground.rising
    best, first, last = -np.inf, -1, -1
    a = b = head = tail = 0  # the window is line[a:b]; `rising` holds the places in it with no lower score after them
    while a < living:
        below = offset[line[a - 1]] + sizes[line[a - 1]] if a > 0 else 0
        blocked = False
        while b == a or (offset[line[b]] if b < living else memory) - below < size:
            if b == living:
                return first, last, best
            s = line[b]
            b += 1
            blocked = pinned[s] == i or ground.fresh[s] == i
            if blocked:
                break
            while tail > head and score[line[rising[tail - 1]]] >= score[s]:
                tail -= 1
            rising[tail] = b - 1
            tail += 1
        if blocked:
            a, head, tail = b, 0, 0
            continue
        if score[line[rising[head]]] > best:
            best, first, last = score[line[rising[head]]], a, b - 1
        if rising[head] == a:
            head += 1
        a += 1
        if b == a:
            head = tail = 0
    return first, last, best
