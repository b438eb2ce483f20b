"""What both walks share: where every storage is, what they follow, and how a step opens."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.kernels import inlined_kernel, kernel
from planner.swap.draft.absences import Gaps
from planner.swap.evict.link_calendar import Calendar, blank_calendar, book
from planner.swap.evict.next_use_queue import Upcoming, blank_upcoming
from planner.swap.problem.problem import Flags, Flow, Ints, Seconds
from planner.swap.problem.uses import Uses
from planner.swap.stop import Flag

#: Where a storage is.
UNMADE, HERE, AWAY, DONE = 0, 1, 2, 3


class Route(NamedTuple):
    """What a walk follows: the op in each slot, the graph, when storages are touched, and what is thought of time.

    `clock[i]` is when slot `i` is thought to begin, its last entry the end; `work[s]` is how many seconds storage `s`
    takes on the link, and a reload is given `lead` times that. With `heed`, a storage whose copy out could not be done
    in time stays where there is another. The walk with addresses, which takes long, returns early
    once `stop` is not 0.
    """

    order: Ints
    flow: Flow
    uses: Uses
    clock: Seconds
    work: Seconds
    lead: float
    heed: bool
    stop: Flag


class Desk(NamedTuple):
    """Scratch of one walk, so that a walk allocates nothing.

    Per storage: where it is (`state`), whether its host copy is `valid`, its next use (`cursor`, into the uses), the
    slot that last wrote it (`written`), its latest `gap`, the slot its latest reload is for (`returns`), and the last
    slot that it was `pinned` in. `upcoming` lists those on the device that may leave by their next use.
    Per slot: the first gap whose reload begins in it (`head`); per gap the next such one (`following`).
    """

    state: Ints
    valid: Flags
    cursor: Ints
    written: Ints
    gap: Ints
    returns: Ints
    pinned: Ints
    head: Ints
    following: Ints
    upcoming: Upcoming
    calendar: Calendar
    outgoing: Calendar


def blank_desk(ops: int, storages: int, gaps: int) -> Desk:
    """Scratch for walks over a graph of this size."""
    state, cursor, written, gap, returns, pinned = (np.empty(storages, np.int32) for _ in range(6))
    return Desk(
        state, np.empty(storages, np.bool_), cursor, written, gap, returns, pinned,
        np.empty(ops + 1, np.int32), np.empty(gaps, np.int32), blank_upcoming(2 * ops + 1, storages),
        blank_calendar(), blank_calendar(),
    )  # fmt: skip


@kernel
def open_step(route: Route, resident: Flags, on_demand: bool, gaps: Gaps, desk: Desk, width: float) -> int:
    """Put every storage where it is when the step starts and plan the way in of what is away; returns the gaps."""
    order, flow, uses, clock, work, lead = route[:6]
    first, items = flow.touches.start, flow.touches.items
    held, updated, start, slot = flow.held, flow.updated, uses.start, uses.slot
    state, valid, cursor, written, gap, returns, pinned, head = desk[:8]
    booked, free, slots = desk.calendar
    head[:] = -1
    for s in range(held.shape[0]):
        state[s], valid[s], cursor[s], written[s] = UNMADE, False, start[s], -1
        gap[s], returns[s], pinned[s] = -1, -1, -1
        if held[s] and start[s] < start[s + 1]:
            state[s] = HERE if resident[s] else AWAY
            valid[s] = not (resident[s] and updated[s])
    count = 0
    for i in range(order.shape[0]):
        for k in range(first[order[i]], first[order[i] + 1]):
            s = items[k]
            if state[s] == AWAY and gap[s] < 0 and slot[start[s]] == i:
                q = i if on_demand else min(book(booked, free, slots, width, work[s] * lead, 0.0, clock[i]), i)
                gaps.storage[count], gaps.ready[count], gaps.release[count] = s, -1, -1
                gaps.use[count], gaps.copy[count] = i, False
                gap[s] = count
                arrive(gaps, desk, count, q)
                count += 1
    return count


@inlined_kernel
def arrive(gaps: Gaps, desk: Desk, k: int, slot: int) -> None:
    """Let gap `k` end with a reload that begins in this slot."""
    gaps.reload[k] = slot
    desk.following[k] = desk.head[slot]
    desk.head[slot] = k


@inlined_kernel
def put_off(gaps: Gaps, desk: Desk, s: int, i: int) -> None:
    """Let a reload that is not needed by slot `i` begin later, by enough not to meet it in every slot."""
    k = desk.gap[s]
    desk.returns[s] = -1
    arrive(gaps, desk, k, i + max(1, (gaps.use[k] - i) // 2))
