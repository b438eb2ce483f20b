"""When each block was in use: the events of a trace paired, and joined with what the segments hold at the end."""

from __future__ import annotations

import numpy as np

from planner.errors import StowageError
from planner.snapshot.freed_block_sizes import unsplit_sizes
from planner.snapshot.tables import ACTIONS, Action, Allocations, Ints, MemoryBlocks, MemoryEvents, MemorySegments
from planner.units import several

#: The allocator's smallest block, of which all others are multiples (`kMinBlockSize` of CUDACachingAllocator.cpp).
BLOCK = 512

_ALLOC, _REQUESTED = ACTIONS.index(Action.ALLOC), ACTIONS.index(Action.FREE_REQUESTED)


def rounded(requested: Ints) -> Ints:
    """Bytes of the blocks that the allocator makes for requests: at least one of 512 bytes, and whole ones."""
    return np.maximum(-(-requested // BLOCK) * BLOCK, BLOCK)


def find_allocations(events: MemoryEvents, segments: MemorySegments, blocks: MemoryBlocks) -> Allocations:
    """Pair the events of each address.

    A block is in use until its free is completed, or if that is not in the trace until it was requested or the address
    was allocated again.

    Args:
        events: of the trace, whose beginning may be missing.
        segments, blocks: at its end.

    Raises:
        StowageError: nothing is ever freed in the trace, and blocks that it allocates are gone at the end.
    """
    chosen = events.where(Action.ALLOC, Action.FREE_REQUESTED, Action.FREE_COMPLETED)
    count = len(events)
    address, requested, start, end, stack = list[int](), list[int](), list[int](), list[int](), list[int]()
    in_use: dict[int, int] = {}
    leaving: dict[int, int] = {}

    def begin(at: int, where: int, size: int, caller: int) -> None:
        in_use[where] = len(address)
        for one, value in ((address, where), (requested, size), (start, at), (end, count), (stack, caller)):
            one.append(value)

    fields = (events.action, events.address, events.bytes, events.stack)
    for at, action, where, size, caller in zip(
        chosen.tolist(), *(each[chosen].tolist() for each in fields), strict=True
    ):
        if action == _ALLOC:
            if where in in_use:
                end[in_use[where]] = leaving.pop(where, at)
            begin(at, where, size, caller)
            continue
        if where not in in_use:
            begin(-1, where, size, -1)
        if action == _REQUESTED:
            leaving[where] = at
        else:
            end[in_use.pop(where)] = at
            leaving.pop(where, None)

    held = np.flatnonzero(blocks.active)
    places = dict(zip(blocks.address[held].tolist(), held.tolist(), strict=True))
    gone = [where for where in in_use if where not in places and where not in leaving]
    if gone and not events.where(Action.FREE_REQUESTED, Action.FREE_COMPLETED).size:
        raise StowageError(
            f"its trace frees nothing, and of what it allocates {several(len(gone), 'block')} "
            f"{'is' if len(gone) == 1 else 'are'} gone at the end; record it again without skip_actions"
        )
    for where, freed in leaving.items():
        if where not in places:
            end[in_use[where]] = freed
    for where, place in places.items():
        if where not in in_use:
            begin(-1, where, int(blocks.requested_bytes[place]), int(blocks.stack[place]))
    columns = [np.array(one, np.int64) for one in (address, requested, start, end, stack)]
    sizes = unsplit_sizes(events, segments, columns[0], rounded(columns[1]), columns[2], columns[3])
    for where, place in places.items():
        number = in_use[where]
        sizes[number] = blocks.bytes[place]
    order = np.argsort(columns[2], kind="stable")
    where_, asked, begins, ends, callers = (one[order] for one in columns)
    return Allocations(where_, sizes[order], asked, begins, ends, callers)
