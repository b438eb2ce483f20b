"""Device memory during an eviction pass: offsets of residents, holes, and neighbours whose eviction makes room."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.jit import kernel
from planner.swap.problem.problem import Bytes, Ints, Seconds


class AddressSpace(NamedTuple):
    """Residents by offset, and scratch for choosing among them.

    `line` holds the storages on the device by ascending `offset`; `fresh[s]` is the slot in which `s` was last placed,
    `laid[s]` the last one in which it was laid out together with all that an op needs. `left[k]` is the offset that
    the storage of absence `k` had when it left. `wanted`, `score` and `rising` are scratch per storage.
    """

    line: Ints
    offset: Bytes
    fresh: Ints
    laid: Ints
    left: Bytes
    wanted: Ints
    score: Seconds
    rising: Ints


def blank_address_space(storages: int, absences: int) -> AddressSpace:
    """Scratch for an eviction pass over this many storages."""
    line, fresh, laid, wanted, rising = (np.empty(storages, np.int32) for _ in range(5))
    offset, left = np.zeros(storages, np.int64), np.empty(absences, np.int64)
    return AddressSpace(line, offset, fresh, laid, left, wanted, np.empty(storages), rising)


@kernel
def put(space: AddressSpace, living: int, s: int, at: int) -> int:
    """Place a storage; returns the new number of residents."""
    line, offset = space.line, space.offset
    offset[s] = at
    p = living
    while p > 0 and offset[line[p - 1]] > at:
        line[p] = line[p - 1]
        p -= 1
    line[p] = s
    return living + 1


@kernel
def find(space: AddressSpace, living: int, s: int) -> int:
    """The position of a resident in the line."""
    low, high = 0, living
    while low < high:
        middle = (low + high) // 2
        if space.offset[space.line[middle]] < space.offset[s]:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def lift(space: AddressSpace, living: int, first: int, last: int) -> int:
    """Remove the residents from one position to another, inclusive; returns how many are left."""
    for p in range(last + 1, living):
        space.line[p - (last + 1 - first)] = space.line[p]
    return living - (last + 1 - first)


@kernel
def hole(space: AddressSpace, living: int, sizes: Bytes, memory: int, size: int, top: bool) -> int:
    """An offset where a storage fits: the bottom of the tightest hole, or with `top` the upper end of the highest hole.

    -1 if there is none.
    """
    at, tightest, below = -1, 2**62, 0
    for a in range(living + 1):
        above = space.offset[space.line[a]] if a < living else memory
        if above - below >= size:
            if top:
                at = above - size
            elif above - below < tightest:
                at, tightest = below, above - below
        if a < living:
            below = above + sizes[space.line[a]]
    return at


@kernel
def window(
    space: AddressSpace, living: int, sizes: Bytes, memory: int, size: int, pinned: Ints, i: int
) -> tuple[int, int, float]:
    """The neighbours to evict to make room, those whose lowest score is highest.

    Returns their first and last position and that score; -1 if storages that slot `i` needs are always in the way.
    """
    line, offset, score, rising = space.line, space.offset, space.score, space.rising
    best, first, last = -np.inf, -1, -1
    a = b = head = tail = 0  # the window is line[a:b]; `rising`: positions in it with no lower score after them
    while a < living:
        below = offset[line[a - 1]] + sizes[line[a - 1]] if a > 0 else 0
        blocked = False
        while b == a or (offset[line[b]] if b < living else memory) - below < size:
            if b == living:
                return first, last, best
            s = line[b]
            b += 1
            blocked = pinned[s] == i or space.fresh[s] == i
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
