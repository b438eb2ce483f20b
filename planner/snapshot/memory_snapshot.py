"""A memory snapshot of one device, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.snapshot.allocations import find_allocations
from planner.snapshot.segment_spans import ReservedSpans, reserved_spans
from planner.snapshot.tables import Allocations, Ints, MemoryBlocks, MemoryEvents, MemorySegments, Stacks
from planner.snapshot.usage import MemoryUsage, ReservedPeak, peak_of, usage_of
from planner.units import format_bytes, several

#: What is said of a snapshot without events.
NO_EVENTS = "no events were recorded, so its peak is what there is at the end"


@dataclass(frozen=True, slots=True)
class LineBytes:
    """What a line of code holds.

    Args:
        line: the user's line as `model.py:123`; `""` for what no line is known of.
        bytes: in blocks.
        allocations: how many blocks.
    """

    line: str
    bytes: int
    allocations: int


@dataclass(frozen=True, eq=False)
class MemorySnapshot:
    """What `torch.cuda.memory._dump_snapshot` wrote of one device.

    Args:
        name: of the file.
        device: its number.
        segments, blocks: what it holds at the end.
        events: what the allocator did before, as far as it was recorded.
        stacks: the call stacks of blocks and events.
    """

    name: str
    device: int
    segments: MemorySegments
    blocks: MemoryBlocks
    events: MemoryEvents
    stacks: Stacks

    def __repr__(self) -> str:
        """One line, because a notebook would print the default repr, which can reach megabytes."""
        peak = self.peak
        when = f"{several(len(self.events), 'event')}, peak" if self.has_events else f"{NO_EVENTS}:"
        return (
            f"<MemorySnapshot {self.name} of device {self.device}: {when} {format_bytes(peak.reserved_bytes)} "
            f"reserved, {format_bytes(peak.allocated_bytes)} of it allocated>"
        )

    @property
    def has_events(self) -> bool:
        """Whether events were recorded; without any, `peak` is what there is at the end."""
        return len(self.events) > 0

    @cached_property
    def allocations(self) -> Allocations:
        """Every block that was in use at some time."""
        return find_allocations(self.events, self.segments, self.blocks)

    @cached_property
    def usage(self) -> MemoryUsage:
        """Bytes allocated and reserved after each event."""
        return usage_of(self.events, self.allocations, int(self.segments.bytes.sum()))

    @cached_property
    def reserved_spans(self) -> ReservedSpans:
        """Which addresses are reserved when."""
        return reserved_spans(self.events, self.segments)

    @cached_property
    def peak(self) -> ReservedPeak:
        """The moment when most memory is reserved."""
        return peak_of(self.usage)

    @property
    def peak_allocated_bytes(self) -> int:
        """The most bytes in blocks in use, which may be at another moment than `peak`."""
        return int(self.usage.allocated.max())

    def line(self, stack: int) -> str:
        """The user's line of a stack; `""` if none is known."""
        return self.stacks.lines[stack] if stack >= 0 else ""

    def holders(self, event: int | None = None) -> list[LineBytes]:
        """What each line of code holds once an event is done, the most first.

        Args:
            event: by default that of `peak`.
        """
        alive = self.allocations.alive_after(self.peak.event if event is None else event)
        return _by_line(self, alive)


def _by_line(snapshot: MemorySnapshot, chosen: Ints) -> list[LineBytes]:
    stacks, sizes = snapshot.allocations.stack[chosen], snapshot.allocations.bytes[chosen]
    distinct, number = np.unique(stacks, return_inverse=True)
    held: dict[str, tuple[int, int]] = {}
    for position, stack in enumerate(distinct.tolist()):
        ours, line = number == position, snapshot.line(stack)
        size, count = held.get(line, (0, 0))
        held[line] = size + int(sizes[ours].sum()), count + int(ours.sum())
    return sorted((LineBytes(line, *both) for line, both in held.items()), key=lambda one: (-one.bytes, one.line))
