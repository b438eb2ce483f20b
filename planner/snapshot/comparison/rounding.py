"""Reserved memory that is not allocated: what segments were made larger for, and what came free in them later."""

from __future__ import annotations

import numpy as np

from planner.snapshot.allocations import rounded
from planner.snapshot.memory_snapshot import MemorySnapshot
from planner.snapshot.tables import ACTIONS, Action, Ints


def segment_rounding(snapshot: MemorySnapshot, alive: Ints) -> int:
    """Bytes that are free at the peak in segments only because these are larger than the block they were made for.

    PyTorch makes segments of 2 MiB for blocks up to 1 MiB, of 20 MiB for blocks below 10 MiB, and rounds others up to
    2 MiB (`c10/cuda/CUDACachingAllocator.cpp`). A segment from before the trace counts for nothing here.

    Args:
        snapshot: what was recorded.
        alive: allocations that are in use at the peak.
    """
    events, lives = snapshot.events, snapshot.allocations
    until = snapshot.peak.event + 1
    of_segments = events.where(Action.SEGMENT_ALLOC, Action.SEGMENT_FREE)
    made: dict[int, int] = {}  # by address, the event
    for event in of_segments[of_segments < until].tolist():
        address = int(events.address[event])
        if ACTIONS[events.action[event]] is Action.SEGMENT_ALLOC:
            made[address] = event
        else:
            made.pop(address, None)
    order = np.argsort(lives.address[alive], kind="stable")
    addresses, filled = lives.address[alive][order], np.append(0, np.cumsum(lives.bytes[alive][order]))
    allocs = events.where(Action.ALLOC)
    total = 0
    for address, event in made.items():
        size = int(events.bytes[event])
        following = np.searchsorted(allocs, event)
        if following == len(allocs) or events.address[allocs[following]] != address:
            continue  # the allocation that it was made for is not recorded
        asked = int(rounded(events.bytes[allocs[following : following + 1]])[0])
        first, last = np.searchsorted(addresses, [address, address + size])
        free = size - int(filled[last] - filled[first])
        total += max(min(free, size - asked), 0)
    return total
