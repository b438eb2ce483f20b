"""The address and time of every block that a GPU really had in use: a memory snapshot as boxes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from planner.errors import StowageError
from planner.snapshot import NO_EVENTS, MemorySnapshot
from planner.units import bytes_label, format_percent, several
from widgets.info.argument_types import require
from widgets.info.residency_spans import Axis, Floats, Ints


class Held(StrEnum):
    """What is known of a block; the value is its label."""

    THROUGHOUT = "held throughout"
    BY_LINE = "with a line of code"
    UNKNOWN = "without a line"


HELD = tuple(Held)
_THROUGHOUT, _BY_LINE, _UNKNOWN = range(3)


@dataclass(frozen=True, eq=False)
class SnapshotMap:
    """Boxes, one per block, as parallel arrays, and the memory that is reserved behind them.

    Args:
        name: of the file.
        axis: whether `start`, `stop`, `end` are seconds since the first event, or numbers of events.
        end: end of the trace, on that axis.
        held: `[boxes]`, position in `HELD`.
        lines: `[boxes]`, the user's line, `""` if none is known.
        start, stop: `[boxes]`, span on that axis.
        offset, bytes: `[boxes]`, address and size in bytes; addresses that are never reserved are left out.
        reserved: `[spans, 4]`, start and stop on that axis, offset and bytes.
        span_bytes: all addresses that are ever reserved.
        peak_at: when most is reserved, on that axis.
        peak_bytes: the most bytes reserved.
        allocated_bytes: how much of them is allocated then.
        has_events: whether any were recorded; without, all of this is of the end.
    """

    name: str
    axis: Axis
    end: float
    held: Ints
    lines: tuple[str, ...]
    start: Floats
    stop: Floats
    offset: Ints
    bytes: Ints
    reserved: Floats
    span_bytes: int
    peak_at: float
    peak_bytes: int
    allocated_bytes: int
    has_events: bool

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        free = 1 - self.allocated_bytes / self.peak_bytes if self.peak_bytes else 0.0
        return (
            f"{several(len(self.held), 'block')} in {bytes_label(self.peak_bytes)} of reserved memory at the peak, of "
            f"which {format_percent(free)} is fragmentation then{'' if self.has_events else f'; {NO_EVENTS}'}."
        )


def get_snapshot_map(snapshot: MemorySnapshot, axis: Axis = "seconds") -> SnapshotMap:
    """Lay out a snapshot's blocks.

    Args:
        snapshot: as `planner.snapshot.read` returns it.
        axis: seconds, or slots for the numbers of events.

    Raises:
        StowageError: the events were recorded without times.
    """
    require(snapshot, MemorySnapshot, "snapshot", "what planner.snapshot.read(path) returns")
    lives, spans, count = snapshot.allocations, snapshot.reserved_spans, len(snapshot.events)
    places = np.arange(count + 1, dtype=np.float64)
    if axis == "seconds" and count:
        times = snapshot.events.microseconds
        if (times < 0).any():
            raise StowageError(f'{snapshot.name} says nothing about when its events were; choose axis="slots"')
        times = np.maximum.accumulate(times)  # the clock may be set back meanwhile
        places = np.append(times - times[0], times[-1] - times[0]) / 1e6
    end = float(places[-1]) or 1.0
    if not places[-1]:
        places = np.append(np.zeros(count), end)  # a moment, drawn as a span
    offsets = _Compact(np.concatenate([spans.address, lives.address]), np.concatenate([spans.bytes, lives.bytes]))
    lines = [snapshot.line(stack) for stack in range(len(snapshot.stacks.lines))]
    throughout = (lives.start < 0) & (lives.end == count)
    known = np.array([bool(line) for line in lines] + [False], np.bool_)[lives.stack]
    peak = snapshot.peak

    def when(starts: Ints) -> Floats:
        return np.where(starts < 0, 0.0, places[starts])

    return SnapshotMap(
        snapshot.name, axis, end,
        np.select([throughout, known], [_THROUGHOUT, _BY_LINE], _UNKNOWN),
        tuple(lines[stack] if stack >= 0 else "" for stack in lives.stack.tolist()),
        when(lives.start), when(lives.end), offsets.of(lives.address), lives.bytes,
        np.stack([when(spans.start), when(spans.end), offsets.of(spans.address), spans.bytes], axis=1),
        offsets.total, float(when(np.array([peak.event]))[0]), peak.reserved_bytes, peak.allocated_bytes,
        snapshot.has_events,
    )  # fmt: skip


class _Compact:
    """Ranges of addresses laid end to end, in order, without what is between them.

    Args:
        address, size: `[ranges]`, which may overlap.
    """

    def __init__(self, address: Ints, size: Ints) -> None:
        order = np.argsort(address, kind="stable")
        first, last = address[order], np.maximum.accumulate((address + size)[order])
        apart = np.append(True, first[1:] > last[:-1]) if len(first) else np.zeros(0, np.bool_)
        self._starts = first[apart]
        lengths = last[np.append(np.flatnonzero(apart)[1:] - 1, len(last) - 1)] - self._starts if len(first) else first
        self._shift = self._starts - (np.cumsum(lengths) - lengths)
        self.total = int(lengths.sum())

    def of(self, address: Ints) -> Ints:
        """Where addresses are now."""
        if not len(self._starts):
            return address
        return np.asarray(address - self._shift[np.searchsorted(self._starts, address, side="right") - 1], np.int64)
