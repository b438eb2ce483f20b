"""Which addresses are reserved when: segments that are allocated and freed, or mapped and unmapped piece by piece."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.snapshot.tables import ACTIONS, Action, Ints, MemoryEvents, MemorySegments

_GROWS = (ACTIONS.index(Action.SEGMENT_ALLOC), ACTIONS.index(Action.SEGMENT_MAP))


@dataclass(frozen=True, eq=False)
class ReservedSpans:
    """Ranges of addresses while they are reserved, `[spans]`.

    Args:
        address, bytes: the range.
        start: event that reserved it; -1 if it was before the first.
        end: event that gave it back; the number of events if it still is reserved.
    """

    address: Ints
    bytes: Ints
    start: Ints
    end: Ints


def reserved_spans(events: MemoryEvents, segments: MemorySegments) -> ReservedSpans:
    """Follow the segments over the events of a trace.

    Args:
        events: of the trace.
        segments: at its end.
    """
    chosen = events.where(Action.SEGMENT_ALLOC, Action.SEGMENT_MAP, Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)
    where, size = events.address[chosen], events.bytes[chosen]
    edges = np.unique(np.concatenate([where, where + size, segments.address, segments.address + segments.bytes]))
    count, pieces = len(events), max(len(edges) - 1, 0)
    since = np.full(pieces, -1, np.int64)  # of each piece between two edges
    reserved, seen = np.zeros(pieces, np.bool_), np.zeros(pieces, np.bool_)
    found = [np.zeros((0, 3), np.int64)]

    def close(which: Ints, at: int) -> None:
        found.append(np.stack([which, since[which], np.full(len(which), at)], axis=1))

    firsts, lasts = np.searchsorted(edges, where), np.searchsorted(edges, where + size)
    for at, action, first, last in zip(
        chosen.tolist(), events.action[chosen].tolist(), firsts.tolist(), lasts.tolist(), strict=True
    ):
        span = np.arange(first, last)
        if action in _GROWS:
            fresh = span[~reserved[span]]
            since[fresh], reserved[fresh] = at, True
        else:
            close(span[reserved[span] | ~seen[span]], at)
            reserved[span] = False
        seen[span] = True
    held = np.zeros(pieces, np.bool_)
    for first, last in zip(
        np.searchsorted(edges, segments.address).tolist(),
        np.searchsorted(edges, segments.address + segments.bytes).tolist(), strict=True,
    ):  # fmt: skip
        held[first:last] = True
    close(np.flatnonzero(held & (reserved | ~seen)), count)
    rows = np.concatenate(found)
    rows = rows[np.lexsort((rows[:, 0], rows[:, 2], rows[:, 1]))]
    return ReservedSpans(edges[rows[:, 0]], np.diff(edges)[rows[:, 0]], rows[:, 1], rows[:, 2])
