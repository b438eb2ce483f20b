"""Device memory during an eviction pass: offsets of residents, holes, and neighbours whose eviction makes room."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.jit import kernel
from planner.swap.problem.problem import Bytes, Ints, Seconds


class AddressSpace(NamedTuple):
    """Residents by offset, and scratch for choosing among them.

    `by_offset` holds the storages on the device by ascending `offset`; `placed_in[s]` is the slot in which `s` was last
    placed, `laid_out_in[s]` the last one in which it was laid out together with all that an op needs.
    `offset_at_release[k]` is the offset that the storage of absence `k` had when it left. `to_place`, `score` and
    `candidates` are scratch per storage.
    """

    by_offset: Ints
    offset: Bytes
    placed_in: Ints
    laid_out_in: Ints
    offset_at_release: Bytes
    to_place: Ints
    score: Seconds
    candidates: Ints


def blank_address_space(storages: int, absences: int) -> AddressSpace:
    """Scratch for an eviction pass over this many storages."""
    by_offset, placed_in, laid_out_in, to_place, candidates = (np.empty(storages, np.int32) for _ in range(5))
    offset, offset_at_release = np.zeros(storages, np.int64), np.empty(absences, np.int64)
    return AddressSpace(
        by_offset, offset, placed_in, laid_out_in, offset_at_release, to_place, np.empty(storages), candidates
    )


@kernel
def insert(space: AddressSpace, resident_count: int, s: int, at: int) -> int:
    """Place a storage; returns the new number of residents."""
    by_offset, offset = space.by_offset, space.offset
    offset[s] = at
    p = resident_count
    while p > 0 and offset[by_offset[p - 1]] > at:
        by_offset[p] = by_offset[p - 1]
        p -= 1
    by_offset[p] = s
    return resident_count + 1


@kernel
def position_of(space: AddressSpace, resident_count: int, s: int) -> int:
    """The position of a resident in `by_offset`."""
    low, high = 0, resident_count
    while low < high:
        middle = (low + high) // 2
        if space.offset[space.by_offset[middle]] < space.offset[s]:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def remove(space: AddressSpace, resident_count: int, first: int, last: int) -> int:
    """Remove the residents from one position to another, inclusive; returns how many are left."""
    for p in range(last + 1, resident_count):
        space.by_offset[p - (last + 1 - first)] = space.by_offset[p]
    return resident_count - (last + 1 - first)


@kernel
def find_hole(space: AddressSpace, resident_count: int, sizes: Bytes, memory: int, size: int, at_top: bool) -> int:
    """An offset where a storage fits; -1 if there is none.

    It is the bottom of the tightest hole, or with `at_top` the upper end of the highest hole.
    """
    at, tightest, below = -1, 2**62, 0
    for a in range(resident_count + 1):
        above = space.offset[space.by_offset[a]] if a < resident_count else memory
        if above - below >= size:
            if at_top:
                at = above - size
            elif above - below < tightest:
                at, tightest = below, above - below
        if a < resident_count:
            below = above + sizes[space.by_offset[a]]
    return at


@kernel
def eviction_window(
    space: AddressSpace, resident_count: int, sizes: Bytes, memory: int, size: int, needed_in: Ints, i: int
) -> tuple[int, int, float]:
    """The neighbours to evict to make room, those whose lowest score is highest.

    Returns their first and last position and that score; -1 if storages that slot `i` needs are always in the way.
    """
    by_offset, offset, score, candidates = space.by_offset, space.offset, space.score, space.candidates
    best, first, last = -np.inf, -1, -1
    a = b = head = tail = 0  # the window is line[a:b]; `candidates`: positions in it with no lower score after them
    while a < resident_count:
        below = offset[by_offset[a - 1]] + sizes[by_offset[a - 1]] if a > 0 else 0
        blocked = False
        while b == a or (offset[by_offset[b]] if b < resident_count else memory) - below < size:
            if b == resident_count:
                return first, last, best
            s = by_offset[b]
            b += 1
            blocked = needed_in[s] == i or space.placed_in[s] == i
            if blocked:
                break
            while tail > head and score[by_offset[candidates[tail - 1]]] >= score[s]:
                tail -= 1
            candidates[tail] = b - 1
            tail += 1
        if blocked:
            a, head, tail = b, 0, 0
            continue
        if score[by_offset[candidates[head]]] > best:
            best, first, last = score[by_offset[candidates[head]]], a, b - 1
        if candidates[head] == a:
            head += 1
        a += 1
        if b == a:
            head = tail = 0
    return first, last, best
