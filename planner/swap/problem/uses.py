"""When each storage is touched, for one order of the ops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.kernels import kernel
from planner.swap.problem.problem import Bytes, Flags, Flow, Ints


class Uses(NamedTuple):
    """The slots that touch each storage, ascending, and what follows from them.

    `slot[start[s]:start[s + 1]]` are the slots of storage `s` and `writes` says which of them write it. `donor[i]` is
    the storage whose memory the op in slot `i` may take over for what it creates, or -1; it is done with after that.
    `live[i]` is the bytes in use in slot `i` when nothing ever leaves and every donor is taken.
    """

    start: Ints
    slot: Ints
    writes: Flags
    donor: Ints
    live: Bytes


@kernel
def uses_of(order: Ints, flow: Flow) -> Uses:
    """Find the uses of all storages.

    Args:
        order: `[ops]`, the op in each slot.
        flow: the graph.
    """
    n, m, touches = order.shape[0], flow.bytes.shape[0], flow.touches
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
            slot[end[s]], wrote[end[s]] = i, flow.writes[k]
            end[s] += 1
    donor = np.full(n, -1, np.int32)
    for i in range(n):
        op = order[i]
        made = flow.creates[op]
        if made < 0 or slot[count[made]] != i:
            continue
        for k in range(flow.overwrites.start[op], flow.overwrites.start[op + 1]):
            s = flow.overwrites.items[k]
            if slot[count[s + 1] - 1] == i:
                donor[i] = s
                break
    change = np.zeros(n + 1, np.int64)
    for s in range(m):
        if count[s] == count[s + 1]:
            continue
        first, last = slot[count[s]], slot[count[s + 1] - 1]
        change[0 if flow.held[s] else first] += flow.bytes[s]
        if not flow.stateful[s] and not flow.kept[s]:
            change[last if donor[last] == s else last + 1] -= flow.bytes[s]
    return Uses(count, slot, wrote, donor, np.cumsum(change)[:n])
