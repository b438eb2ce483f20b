"""What a memory snapshot holds, as parallel arrays: segments, blocks, and the events of the allocator."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Codes = NDArray[np.int8]
Flags = NDArray[np.bool_]


class Action(StrEnum):
    """What the allocator did in an event."""

    ALLOC = "alloc"
    FREE_REQUESTED = "free_requested"
    FREE_COMPLETED = "free_completed"
    SEGMENT_ALLOC = "segment_alloc"
    SEGMENT_FREE = "segment_free"
    SEGMENT_MAP = "segment_map"
    SEGMENT_UNMAP = "segment_unmap"
    OOM = "oom"
    SNAPSHOT = "snapshot"


class BlockState(StrEnum):
    """Whether a block is in use."""

    ALLOCATED = "active_allocated"
    #: Freed, and waiting for another stream; PyTorch's documentation calls it `active_awaiting_free`.
    PENDING_FREE = "active_pending_free"
    INACTIVE = "inactive"


ACTIONS, STATES = tuple(Action), tuple(BlockState)


class StackFrame(NamedTuple):
    """One call of a stack.

    Args:
        filename: as Python knew it; `""` or `??` for some of C++.
        line: its number, 0 if unknown.
        function: its name.
    """

    filename: str
    line: int
    function: str


@dataclass(frozen=True, eq=False)
class Stacks:
    """The distinct call stacks of a snapshot.

    Args:
        frames: per stack its calls, innermost first.
        lines: per stack the user's line as `model.py:123`; `""` if it has none.
    """

    frames: tuple[tuple[StackFrame, ...], ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class MemorySegments:
    """Memory that the allocator got from CUDA and holds at the end, `[segments]` in order of address.

    Args:
        address, bytes: where it is, and how much.
        stream: number of its CUDA stream.
        large: whether it holds blocks above 1 MiB.
        expandable: whether it may grow.
    """

    address: Ints
    bytes: Ints
    stream: Ints
    large: Flags
    expandable: Flags


@dataclass(frozen=True, eq=False)
class MemoryBlocks:
    """The blocks into which the segments are divided at the end, `[blocks]` in order of address.

    Args:
        segment: position of the segment.
        address, bytes: where it is, and how much.
        requested_bytes: what was asked for, before rounding; of a free block, what last was.
        state: position in `STATES`.
        stack: position in `Stacks` of where it was allocated, -1 if unknown.
    """

    segment: Ints
    address: Ints
    bytes: Ints
    requested_bytes: Ints
    state: Codes
    stack: Ints

    @property
    def active(self) -> Flags:
        """`[blocks]`, whether nothing else may use it."""
        return np.not_equal(self.state, STATES.index(BlockState.INACTIVE))


@dataclass(frozen=True, eq=False)
class MemoryEvents:
    """What the allocator did, `[events]` in order of time.

    Args:
        action: position in `ACTIONS`.
        address: of the block or segment; for `oom`, the bytes that CUDA had free.
        bytes: requested bytes of a block, bytes of a segment.
        stream: number of its CUDA stream.
        microseconds: when, since 1970; -1 if unknown.
        stack: position in `Stacks`, -1 if unknown.
    """

    action: Codes
    address: Ints
    bytes: Ints
    stream: Ints
    microseconds: Ints
    stack: Ints

    def __len__(self) -> int:
        return len(self.action)

    def where(self, *actions: Action) -> Ints:
        """The events that are one of some actions, ascending."""
        return np.flatnonzero(np.isin(self.action, [ACTIONS.index(action) for action in actions]))


@dataclass(frozen=True, eq=False)
class Allocations:
    """Every block that was in use at some time, `[allocations]` in order of its start.

    Args:
        address: where it is.
        bytes: of the block: what was asked for, rounded up, with what was not split off; of blocks that are gone, as by
            PyTorch's default settings.
        requested_bytes: what was asked for.
        start: event that allocated it; -1 if it was in use before the first event.
        end: event that freed it; the number of events if it is still in use.
        stack: position in `Stacks`, -1 if unknown.
    """

    address: Ints
    bytes: Ints
    requested_bytes: Ints
    start: Ints
    end: Ints
    stack: Ints

    def __len__(self) -> int:
        return len(self.address)

    def alive_after(self, event: int) -> Ints:
        """The allocations in use once an event is done; -1 is before the first."""
        return np.flatnonzero((self.start <= event) & (event < self.end))
