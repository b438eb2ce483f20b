"""When each storage is touched, for one order of the ops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.jit import kernel
from planner.swap.problem.problem import Bytes, Flags, Ints, ProblemArrays


class Uses(NamedTuple):
    """The slots that touch each storage, ascending, and what follows from them.

    `slot[start[s]:start[s + 1]]` are the slots of storage `s` and `writes` says which of them write it.
    `reused_buffer[i]` is the storage whose buffer the op in slot `i` may reuse for its result, or -1; that slot is its
    last use. `live[i]` is the bytes in use in slot `i` if nothing is ever evicted and every such buffer is reused.
    """

    start: Ints
    slot: Ints
    writes: Flags
    reused_buffer: Ints
    live: Bytes


@kernel
def uses_of(order: Ints, arrays: ProblemArrays) -> Uses:
    """Find the uses of all storages.

    Args:
        order: `[ops]`, the op in each slot.
        arrays: the graph.
    """
    n, m, touches = order.shape[0], arrays.bytes.shape[0], arrays.touches
    count = np.zeros(m + 1, np.int32)
    for s in touches.items:
        count[s + 1] += 1
    for s in range(m):
        count[s + 1] += count[s]
    slot = np.empty(count[m], np.int32)
    wrote = np.empty(count[m], np.bool_)
    end = count[:m].copy()
    for i in range(n):
        for k in range(touches.start[order[i]], touches.start[order[i] + 1]):
            s = touches.items[k]
            slot[end[s]], wrote[end[s]] = i, arrays.writes[k]
            end[s] += 1
    reused_buffer = np.full(n, -1, np.int32)
    for i in range(n):
        op = order[i]
        made = arrays.creates[op]
        if made < 0 or slot[count[made]] != i:
            continue
        for k in range(arrays.overwrites.start[op], arrays.overwrites.start[op + 1]):
            s = arrays.overwrites.items[k]
            if slot[count[s + 1] - 1] == i:
                reused_buffer[i] = s
                break
    change = np.zeros(n + 1, np.int64)
    for s in range(m):
        if count[s] == count[s + 1]:
            continue
        first, last = slot[count[s]], slot[count[s + 1] - 1]
        change[0 if arrays.live_in[s] else first] += arrays.bytes[s]
        if not arrays.persistent[s] and not arrays.live_out[s]:
            change[last if reused_buffer[last] == s else last + 1] -= arrays.bytes[s]
    return Uses(count, slot, wrote, reused_buffer, np.cumsum(change)[:n])
