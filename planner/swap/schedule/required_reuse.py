"""Ops that fit only if their result reuses the buffer of an input, and the slot before each.

The storage reused in slot `i` has been on the device since slot `i - 1` at the latest, next to the working set of the
op there. That is the only condition: everything else that a slot needs can come and go between two slots, and is
contiguous if the buffer reused from the slot before is at one end of memory and the one that the next slot reuses is
at the other.
"""

from __future__ import annotations

import numpy as np

from planner.graph import Csr
from planner.jit import kernel
from planner.swap.problem.problem import Ints, ProblemArrays


@kernel
def required_reuses(order: Ints, arrays: ProblemArrays, memory: int, required_reuse: Ints) -> int:
    """Find the storage that must be reused in each slot; returns -1, or a slot that cannot fit in this order.

    Whether all slots fit is decided exactly: from the last slot to the first, the only choice is between storages of
    the same size, and among those one that the op before touches is never worse.

    Args:
        order: `[ops]`, the op in each slot.
        arrays: the graph.
        memory: bytes.
        required_reuse: `[ops]`, filled with the storage whose buffer must be reused in each slot, or -1.
    """
    n, start, items = order.shape[0], arrays.touches.start, arrays.touches.items
    last = np.full(arrays.bytes.shape[0], -1, np.int32)
    before = np.full(arrays.bytes.shape[0], -1, np.int32)  # the earliest slot seen so far that touches it
    for i in range(n):
        for k in range(start[order[i]], start[order[i] + 1]):
            last[items[k]] = i
    required_reuse[:] = -1
    next_reused = -1  # the storage reused in the next slot
    for i in range(n - 1, -1, -1):
        op, used = order[i], 0
        for k in range(start[op], start[op + 1]):
            used += arrays.bytes[items[k]]
            before[items[k]] = i
        if next_reused >= 0 and before[next_reused] != i:
            used += arrays.bytes[next_reused]
        next_reused = -1
        if used <= memory:
            continue
        if i > 0:
            for k in range(start[order[i - 1]], start[order[i - 1] + 1]):
                before[items[k]] = i - 1
        for k in range(arrays.overwrites.start[op], arrays.overwrites.start[op + 1]):
            s = arrays.overwrites.items[k]
            if last[s] == i and used - arrays.bytes[s] <= memory and (next_reused < 0 or before[s] == i - 1):
                next_reused = s
        if next_reused < 0:
            return i
        required_reuse[i] = next_reused
    return -1


def touched_before(arrays: ProblemArrays, order: Ints, required_reuse: Ints) -> ProblemArrays:
    """The graph for eviction passes over an order: a storage that must be reused counts as touched in the slot before.

    Args:
        arrays: the graph.
        order: `[ops]`, the op in each slot.
        required_reuse: `[ops]`, the storage whose buffer must be reused in each slot, or -1.
    """
    start, items = arrays.touches.start, arrays.touches.items
    added = []
    for slot in np.flatnonzero(required_reuse >= 0).tolist():
        earlier = order[slot - 1]
        if required_reuse[slot] not in items[start[earlier] : start[earlier + 1]]:
            added.append((earlier, required_reuse[slot]))
    ops, added_storages = np.array(added, np.int32).reshape(-1, 2).T
    at = start[ops + 1]
    shift = np.append(0, np.cumsum(np.bincount(ops, minlength=len(order))))
    touches = Csr((start + shift).astype(np.int32), np.insert(items, at, added_storages))
    return arrays._replace(touches=touches, writes=np.insert(arrays.writes, at, False))
