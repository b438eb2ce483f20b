"""What both eviction passes share: their inputs, the state of every storage, and the start of a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.cancel import Flag
from planner.jit import inlined_kernel, kernel
from planner.swap.draft.absences import Absences
from planner.swap.evict.link_calendar import LinkCalendar, blank_link_calendar, reserve
from planner.swap.evict.next_use_queue import NextUseQueue, blank_next_use_queue
from planner.swap.problem.problem import Flags, Ints, ProblemArrays, Seconds
from planner.swap.problem.uses import Uses

#: Where a storage is.
NOT_CREATED, ON_DEVICE, ON_HOST, DEAD = 0, 1, 2, 3


class EvictionInputs(NamedTuple):
    """Inputs of an eviction pass: the op in each slot, the graph, when storages are touched, and estimated times.

    `clock[i]` is when slot `i` is estimated to begin, its last entry the end; `work[s]` is how many seconds storage `s`
    takes on the link, and a reload is given `lead` times that. With `avoid_late_copies`, a storage whose copy out could
    not be done in time stays if another can leave. The address pass, which takes long, returns early once `stop` is not
    0.
    """

    order: Ints
    arrays: ProblemArrays
    uses: Uses
    clock: Seconds
    work: Seconds
    lead: float
    avoid_late_copies: bool
    stop: Flag


class EvictionState(NamedTuple):
    """Scratch of one eviction pass, so that the pass allocates nothing.

    Per storage: where it is (`state`), whether its host copy is `valid`, its next use (`cursor`, into the uses), the
    slot that last wrote it (`written`), its latest `absence`, the slot its latest reload is for (`returns`), and the
    last slot that it was `needed_in`. `next_uses` lists the evictable storages on the device by their next use.
    Per slot: the first absence whose reload begins in it (`head`); per absence: the next one of that slot
    (`following`). `calendar` is that of the in-link, `outgoing` that of the out-link.
    """

    state: Ints
    valid: Flags
    cursor: Ints
    written: Ints
    absence: Ints
    returns: Ints
    needed_in: Ints
    head: Ints
    following: Ints
    next_uses: NextUseQueue
    calendar: LinkCalendar
    outgoing: LinkCalendar


def blank_eviction_state(ops: int, storages: int, absences: int) -> EvictionState:
    """Scratch for eviction passes over a graph of this size."""
    state, cursor, written, absence, returns, needed_in = (np.empty(storages, np.int32) for _ in range(6))
    return EvictionState(
        state, np.empty(storages, np.bool_), cursor, written, absence, returns, needed_in,
        np.empty(ops + 1, np.int32), np.empty(absences, np.int32), blank_next_use_queue(2 * ops + 1, storages),
        blank_link_calendar(), blank_link_calendar(),
    )  # fmt: skip


@kernel
def open_step(
    inputs: EvictionInputs, resident: Flags, on_demand: bool, absences: Absences, eviction: EvictionState, width: float
) -> int:
    """Initialise the state at the start of the step and plan the first reloads; returns the number of absences."""
    order, arrays, uses, clock = inputs.order, inputs.arrays, inputs.uses, inputs.clock
    work, lead = inputs.work, inputs.lead
    first, items = arrays.touches.start, arrays.touches.items
    live_in, updated, start, slot = arrays.live_in, arrays.updated, uses.start, uses.slot
    state, valid, cursor, written = eviction.state, eviction.valid, eviction.cursor, eviction.written
    absence, returns, needed_in, head = eviction.absence, eviction.returns, eviction.needed_in, eviction.head
    booked, free, slots = eviction.calendar.booked, eviction.calendar.free, eviction.calendar.slot
    head[:] = -1
    for s in range(live_in.shape[0]):
        state[s], valid[s], cursor[s], written[s] = NOT_CREATED, False, start[s], -1
        absence[s], returns[s], needed_in[s] = -1, -1, -1
        if live_in[s] and start[s] < start[s + 1]:
            state[s] = ON_DEVICE if resident[s] else ON_HOST
            valid[s] = not (resident[s] and updated[s])
    count = 0
    for i in range(order.shape[0]):
        for k in range(first[order[i]], first[order[i] + 1]):
            s = items[k]
            if state[s] == ON_HOST and absence[s] < 0 and slot[start[s]] == i:
                q = i if on_demand else min(reserve(booked, free, slots, width, work[s] * lead, 0.0, clock[i]), i)
                absences.storage[count], absences.ready[count], absences.release[count] = s, -1, -1
                absences.use[count], absences.copy[count] = i, False
                absence[s] = count
                schedule_reload(absences, eviction, count, q)
                count += 1
    return count


@inlined_kernel
def schedule_reload(absences: Absences, eviction: EvictionState, k: int, slot: int) -> None:
    """End absence `k` with a reload that begins in this slot."""
    absences.reload[k] = slot
    eviction.following[k] = eviction.head[slot]
    eviction.head[slot] = k


@inlined_kernel
def postpone_reload(absences: Absences, eviction: EvictionState, s: int, i: int) -> None:
    """Postpone a reload that is not needed by slot `i`, by enough that it is not reconsidered in every slot."""
    k = eviction.absence[s]
    eviction.returns[s] = -1
    schedule_reload(absences, eviction, k, i + max(1, (absences.use[k] - i) // 2))
