"""How much memory is allocated and reserved after each event, and the peak."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.errors import StowageError
from planner.snapshot.tables import Action, Allocations, Ints, MemoryEvents


@dataclass(frozen=True, eq=False)
class MemoryUsage:
    """Bytes over the events of a trace, `[events + 1]`: entry 0 before the first, entry `i + 1` after event `i`.

    Args:
        allocated: in blocks that are in use, also of those that wait for another stream once they are freed.
        requested: what was asked for in them, before rounding.
        reserved: in segments.
    """

    allocated: Ints
    requested: Ints
    reserved: Ints


@dataclass(frozen=True, slots=True)
class ReservedPeak:
    """The moment when most memory is reserved, and of several the one when most of it is allocated.

    Args:
        event: it is once this event is done; -1 before the first.
        reserved_bytes: in segments, which is what the device has to have.
        allocated_bytes: in blocks that are in use.
        requested_bytes: what was asked for in them.
    """

    event: int
    reserved_bytes: int
    allocated_bytes: int
    requested_bytes: int

    @property
    def fragmentation_bytes(self) -> int:
        """Reserved bytes that are in no block in use."""
        return self.reserved_bytes - self.allocated_bytes

    @property
    def fragmentation(self) -> float:
        """The same as a share of what is reserved."""
        return self.fragmentation_bytes / self.reserved_bytes if self.reserved_bytes else 0.0


def usage_of(events: MemoryEvents, allocations: Allocations, reserved_at_end: int) -> MemoryUsage:
    """Add up blocks and segments after each event.

    Args:
        events: of the trace.
        allocations: of the same snapshot.
        reserved_at_end: bytes in its segments.

    Raises:
        StowageError: more is allocated than reserved.
    """
    count = len(events)
    grown = events.where(Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)
    shrunk = events.where(Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)
    changes = np.zeros(count + 1, np.int64)
    changes[grown + 1] = events.bytes[grown]
    changes[shrunk + 1] = -events.bytes[shrunk]
    changes[0] = reserved_at_end - changes.sum()
    reserved = np.cumsum(changes)
    allocated, requested = (
        _levels(count, allocations, sizes) for sizes in (allocations.bytes, allocations.requested_bytes)
    )
    less = np.flatnonzero(reserved < requested)
    if len(less):
        raise StowageError(
            f"after event {less[0] - 1:,}, {requested[less[0]]:,} bytes are allocated in {reserved[less[0]]:,} "
            "reserved; record it again without skip_actions"
        )
    return MemoryUsage(np.minimum(allocated, reserved), requested, reserved)  # a plan's own blocks are not rounded up


def _levels(count: int, allocations: Allocations, sizes: Ints) -> Ints:
    changes = np.zeros(count + 2, np.int64)
    np.add.at(changes, allocations.start + 1, sizes)
    np.add.at(changes, allocations.end + 1, -sizes)
    return np.cumsum(changes)[: count + 1]


def peak_of(usage: MemoryUsage) -> ReservedPeak:
    """The moment when most is reserved."""
    top = np.flatnonzero(usage.reserved == usage.reserved.max())
    at = int(top[np.argmax(usage.allocated[top])])
    levels = (int(one[at]) for one in (usage.reserved, usage.allocated, usage.requested))
    return ReservedPeak(at - 1, *levels)
