"""Link calendars: how late a copy can begin and still be done in time.

Time is cut into buckets. A reservation takes what is free before a moment, going backwards; a union-find forest skips
full buckets, so that reserving takes almost constant time however full the calendar is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.jit import kernel
from planner.swap.problem.problem import Ints, Seconds

_BUCKETS = 4096


class LinkCalendar(NamedTuple):
    """Seconds reserved in each bucket, where to look for the next free one, and the slot each bucket begins in."""

    booked: Seconds
    free: Ints
    slot: Ints


def blank_link_calendar() -> LinkCalendar:
    """An uninitialised calendar."""
    return LinkCalendar(np.empty(_BUCKETS), np.empty(_BUCKETS + 1, np.int32), np.empty(_BUCKETS, np.int32))


@kernel
def open_calendar(clock: Seconds, calendar: LinkCalendar) -> float:
    """Empty a calendar; returns the width of its buckets in seconds."""
    n = clock.shape[0] - 1
    width = max(clock[n], 1e-30) / _BUCKETS
    slot = 0
    for b in range(_BUCKETS):
        while slot + 1 < n and clock[slot + 1] <= b * width:
            slot += 1
        calendar.slot[b] = slot
        calendar.booked[b] = 0.0
        calendar.free[b + 1] = b + 1
    calendar.free[0] = 0
    return float(width)


@kernel
def slot_at(slot: Ints, width: float, moment: float) -> int:
    """The slot that the bucket of a moment begins in; past the end, that of the last bucket."""
    return int(slot[min(int(moment / width), _BUCKETS - 1)])


@kernel
def _not_full(free: Ints, b: int) -> int:
    """The next bucket that is not full, from one on, which may be this one; paths to it get shorter."""
    root = b
    while free[root] != root:
        root = free[root]
    while free[b] != root:
        free[b], b = root, free[b]
    return int(root)


@kernel
def reserve(
    booked: Seconds, free: Ints, slot: Ints, width: float, seconds: float, earliest: float, until: float
) -> int:
    """Reserve the in-link for some seconds, as late as possible before `until`; returns the slot to begin in.

    If there is not enough room after `earliest`, the copy begins there.
    """
    low = int(earliest / width)
    b = min(int(until / width), _BUCKETS)  # bucket b - 1 is the last that ends by then
    remaining = seconds
    while True:
        b = _not_full(free, b)
        if b <= low:
            return int(slot[min(low, _BUCKETS - 1)])
        free_seconds = width - booked[b - 1]
        if remaining < free_seconds:
            booked[b - 1] += remaining
            return int(slot[b - 1])
        booked[b - 1] = width
        free[b] = b - 1
        remaining -= free_seconds


@kernel
def finish_ahead(booked: Seconds, free: Ints, width: float, seconds: float, earliest: float, reserve: bool) -> float:
    """When a copy that may begin at `earliest` would be done, going forwards; infinity past the end.

    A calendar is reserved either this way or by `reserve`, never both.
    """
    b = min(int(earliest / width), _BUCKETS)
    remaining = seconds
    while True:
        b = _not_full(free, b)
        if b == _BUCKETS:
            return np.inf
        free_seconds = width - booked[b]
        if remaining <= free_seconds:
            done = b * width + booked[b] + remaining
            if reserve:
                booked[b] += remaining
            return float(done)
        remaining -= free_seconds
        if reserve:
            booked[b] = width
            free[b] = b + 1
        b += 1


@kernel
def start_behind(booked: Seconds, free: Ints, width: float, seconds: float, until: float, reserve: bool) -> float:
    """The latest that a copy can begin to be done by `until`, going backwards; minus infinity before the start.

    Like `reserve`, but only looks unless told to reserve.
    """
    b = min(int(until / width), _BUCKETS)  # bucket b - 1 is the last that ends by then
    remaining = seconds
    while True:
        b = _not_full(free, b)
        if b == 0:
            return -np.inf
        free_seconds = width - booked[b - 1]
        if remaining <= free_seconds:
            if reserve:
                booked[b - 1] += remaining
            return float((b - 1) * width)
        remaining -= free_seconds
        if reserve:
            booked[b - 1] = width
            free[b] = b - 1
        b -= 1
