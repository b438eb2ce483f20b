"""Ops that fit only where what they make takes over the memory of an input, and the slot before each.

Who is taken over in slot `i` has been on the device since slot `i - 1` at the latest, next to what the op there works
on. That is all it takes: what a slot needs besides can come and go between two slots, and lies without a gap where
memory that is taken over from the slot before is at one end, and what the next slot takes over at the other.
"""

from __future__ import annotations

import numpy as np

from planner.graph import Csr
from planner.kernels import kernel
from planner.swap.problem.problem import Flow, Ints


@kernel
def needed_takeovers(order: Ints, flow: Flow, memory: int, taken: Ints) -> int:
    """Find who has to be taken over in each slot; returns -1, or a slot that cannot be made to fit in this order.

    Whether all slots fit is decided exactly: from the last slot to the first, none is left a choice but between
    storages of one size, and of those one that the op before touches is never worse.

    Args:
        order: `[ops]`, the op in each slot.
        flow: the graph.
        memory: bytes.
        taken: `[ops]`, filled with the storage that has to be taken over in each slot, or -1.
    """
    n, start, items = order.shape[0], flow.touches.start, flow.touches.items
    last = np.full(flow.bytes.shape[0], -1, np.int32)
    before = np.full(flow.bytes.shape[0], -1, np.int32)  # the slot that touches it, as far as is known
    for i in range(n):
        for k in range(start[order[i]], start[order[i] + 1]):
            last[items[k]] = i
    taken[:] = -1
    coming = -1  # who is taken over in the next slot
    for i in range(n - 1, -1, -1):
        op, used = order[i], 0
        for k in range(start[op], start[op + 1]):
            used += flow.bytes[items[k]]
            before[items[k]] = i
        if coming >= 0 and before[coming] != i:
            used += flow.bytes[coming]
        coming = -1
        if used <= memory:
            continue
        if i > 0:
            for k in range(start[order[i - 1]], start[order[i - 1] + 1]):
                before[items[k]] = i - 1
        for k in range(flow.overwrites.start[op], flow.overwrites.start[op + 1]):
            s = flow.overwrites.items[k]
            if last[s] == i and used - flow.bytes[s] <= memory and (coming < 0 or before[s] == i - 1):
                coming = s
        if coming < 0:
            return i
        taken[i] = coming
    return -1


def touched_before(flow: Flow, order: Ints, taken: Ints) -> Flow:
    """The graph for walks along an order: who has to be taken over counts as touched in the slot before.

    Args:
        flow: the graph.
        order: `[ops]`, the op in each slot.
        taken: `[ops]`, who has to be taken over in each slot, or -1.
    """
    start, items = flow.touches
    new = []
    for slot in np.flatnonzero(taken >= 0).tolist():
        earlier = order[slot - 1]
        if taken[slot] not in items[start[earlier] : start[earlier + 1]]:
            new.append((earlier, taken[slot]))
    ops, who = np.array(new, np.int32).reshape(-1, 2).T
    at = start[ops + 1]
    more = np.append(0, np.cumsum(np.bincount(ops, minlength=len(order))))
    touches = Csr((start + more).astype(np.int32), np.insert(items, at, who))
    return flow._replace(touches=touches, writes=np.insert(flow.writes, at, False))
