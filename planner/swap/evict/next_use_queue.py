"""Storages by the slot of their next use, the furthest first.

One list per slot, and a bit per slot that says whether its list is empty, so that joining, leaving and finding the
furthest take a few operations each, however many storages there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.kernels import kernel
from planner.swap.problem.problem import Ints

Bits = NDArray[np.uint64]


class Upcoming(NamedTuple):
    """Storages listed by slot.

    `head[v]` is the first storage of slot `v`, `after` and `before` are its neighbours in the list, `slot[s]` is where
    storage `s` is listed or -1. `bits` has a bit per slot that is set where there is a list.
    """

    head: Ints
    after: Ints
    before: Ints
    slot: Ints
    bits: Bits


def blank_upcoming(slots: int, storages: int) -> Upcoming:
    """Room for so many slots and storages."""
    head, after, before, slot = (np.empty(count, np.int32) for count in (slots, storages, storages, storages))
    return Upcoming(head, after, before, slot, np.empty((slots + 63) // 64, np.uint64))


@kernel
def clear(upcoming: Upcoming) -> None:
    """Take everybody out."""
    upcoming.head[:] = -1
    upcoming.slot[:] = -1
    upcoming.bits[:] = np.uint64(0)


# The functions below take the arrays one by one: taking them out of a tuple costs a kernel more than what is done here.


@kernel
def leave(head: Ints, after: Ints, before: Ints, slot: Ints, bits: Bits, s: int) -> None:
    """Take a storage out, if it is in."""
    v = slot[s]
    if v < 0:
        return
    if after[s] >= 0:
        before[after[s]] = before[s]
    if before[s] >= 0:
        after[before[s]] = after[s]
    else:
        head[v] = after[s]
        if after[s] < 0:
            bits[v >> 6] ^= np.uint64(1) << np.uint64(v & 63)
    slot[s] = -1


@kernel
def join(head: Ints, after: Ints, before: Ints, slot: Ints, bits: Bits, s: int, v: int) -> None:
    """List a storage that is not in under slot `v`, before the others there."""
    first = head[v]
    after[s], before[s], slot[s], head[v] = first, -1, v, s
    if first >= 0:
        before[first] = s
    else:
        bits[v >> 6] |= np.uint64(1) << np.uint64(v & 63)


@kernel
def furthest(bits: Bits, v: int) -> int:
    """The last slot up to `v` that has a list, or -1."""
    if v < 0:
        return -1
    word = v >> 6
    some = bits[word] & (~np.uint64(0) >> np.uint64(63 - (v & 63)))
    while some == 0:
        word -= 1
        if word < 0:
            return -1
        some = bits[word]
    top = 0
    for step in (32, 16, 8, 4, 2, 1):
        if some >> np.uint64(step):
            some >>= np.uint64(step)
            top += step
    return (word << 6) + top
