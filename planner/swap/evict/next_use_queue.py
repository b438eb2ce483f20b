"""Storages by the slot of their next use, the furthest first.

There is a list per slot, and a bit per slot that is set if its list is not empty, so that joining, leaving and
finding the furthest take a few operations each, however many storages there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.jit import kernel
from planner.swap.problem.problem import Ints

Bits = NDArray[np.uint64]


class NextUseQueue(NamedTuple):
    """Storages listed by slot.

    `head[v]` is the first storage of slot `v`; `after[s]` and `before[s]` are the neighbours of storage `s` in its
    list, `slot[s]` is the slot it is listed under, or -1. `bits` has a bit per slot, set if its list is not empty.
    """

    head: Ints
    after: Ints
    before: Ints
    slot: Ints
    bits: Bits


def blank_next_use_queue(slots: int, storages: int) -> NextUseQueue:
    """An uninitialised queue for this many slots and storages."""
    head, after, before, slot = (np.empty(count, np.int32) for count in (slots, storages, storages, storages))
    return NextUseQueue(head, after, before, slot, np.empty((slots + 63) // 64, np.uint64))


@kernel
def clear(next_uses: NextUseQueue) -> None:
    """Empty the queue."""
    next_uses.head[:] = -1
    next_uses.slot[:] = -1
    next_uses.bits[:] = np.uint64(0)


# The functions below take the arrays one by one: unpacking a tuple costs a kernel more than the work done here.


@kernel
def leave(head: Ints, after: Ints, before: Ints, slot: Ints, bits: Bits, s: int) -> None:
    """Remove a storage, if it is listed."""
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
    """List an unlisted storage under slot `v`, before the others there."""
    first = head[v]
    after[s], before[s], slot[s], head[v] = first, -1, v, s
    if first >= 0:
        before[first] = s
    else:
        bits[v >> 6] |= np.uint64(1) << np.uint64(v & 63)


@kernel
def furthest(bits: Bits, v: int) -> int:
    """The last slot up to `v` whose list is not empty, or -1."""
    if v < 0:
        return -1
    word = v >> 6
    word_bits = bits[word] & (~np.uint64(0) >> np.uint64(63 - (v & 63)))
    while word_bits == 0:
        word -= 1
        if word < 0:
            return -1
        word_bits = bits[word]
    bit = 0
    for step in (32, 16, 8, 4, 2, 1):
        if word_bits >> np.uint64(step):
            word_bits >>= np.uint64(step)
            bit += step
    return (word << 6) + bit
