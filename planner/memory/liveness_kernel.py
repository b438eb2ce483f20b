"""The compiled loop behind `lifetimes`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.jit import kernel

Ints = NDArray[np.int32]
Bytes = NDArray[np.int64]
Flags = NDArray[np.bool_]


@kernel
def find_lifetimes(
    order: Ints,
    read_start: Ints,
    reads: Ints,
    write_start: Ints,
    writes: Ints,
    overwrite_start: Ints,
    overwritten: Ints,
    creates: Ints,
    size: Bytes,
    live_in: Flags,
    persistent: Flags,
    live_out: Flags,
) -> tuple[Ints, Ints, Ints, Bytes]:
    """Birth, end and reused buffer of each storage and the bytes alive in each slot; see `Lifetimes`."""
    slots, storages = len(order), len(size)
    birth = np.full(storages, -1, np.int32)
    end = np.zeros(storages, np.int32)
    reused_buffer = np.full(storages, -1, np.int32)
    birth[live_in] = 0
    for slot in range(slots):
        op = order[slot]
        for k in range(read_start[op], read_start[op + 1]):
            end[reads[k]] = slot + 1
        for k in range(write_start[op], write_start[op + 1]):
            storage = writes[k]
            end[storage] = slot + 1
            if birth[storage] < 0:
                birth[storage] = slot
    for storage in range(storages):
        if persistent[storage] or (live_out[storage] and birth[storage] >= 0):
            end[storage] = slots
        if birth[storage] < 0:
            birth[storage] = end[storage]
    for slot in range(slots):
        op = order[slot]
        created = creates[op]
        if created < 0 or birth[created] != slot:
            continue
        for k in range(overwrite_start[op], overwrite_start[op + 1]):
            candidate = overwritten[k]
            if (
                end[candidate] == slot + 1
                and not live_in[candidate]
                and not live_out[candidate]
                and size[candidate] == size[created] > 0
            ):
                end[candidate] = slot
                reused_buffer[created] = candidate
                break
    change = np.zeros(slots + 1, np.int64)
    for storage in range(storages):
        change[birth[storage]] += size[storage]
        change[end[storage]] -= size[storage]
    return birth, end, reused_buffer, np.cumsum(change)[:slots]
