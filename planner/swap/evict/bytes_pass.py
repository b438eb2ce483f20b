"""The bytes pass: one pass over the slots that decides what leaves the device, when, and when it comes back.

Belady's rule by time, not by count: the storage whose next use is furthest leaves. A calendar adapts it to the link: an
eviction reserves its reload immediately, as late before the next use as the in-link is free. It grew out of the
two-pass eviction of SwapAdvisor (ASPLOS 2020), section 4.2, which models neither time nor the link.
"""

from __future__ import annotations

import numpy as np

from planner.jit import kernel
from planner.swap.draft.absences import NEVER, Absences
from planner.swap.evict.link_calendar import finish_ahead, open_calendar, reserve, slot_at
from planner.swap.evict.next_use_queue import clear, furthest, join, leave
from planner.swap.evict.state import DEAD, NOT_CREATED, ON_DEVICE, ON_HOST, EvictionInputs, EvictionState, open_step
from planner.swap.problem.problem import Flags, Ints, Seconds

#: Lateness of a storage that cannot be back in time.
_TOO_SOON = 1e6
#: How many storages are examined in search of one that is not late at all.
_MAX_EXAMINED = 32


@kernel
def evict_by_bytes(
    inputs: EvictionInputs,
    resident: Flags,
    pinned: Flags,
    memory: int,
    bias: Seconds,
    absences: Absences,
    reuses_buffer_of: Ints,
    resident_at_end: Flags,
    eviction: EvictionState,
) -> tuple[int, int]:
    """Run one eviction pass; allocates nothing.

    Args:
        inputs: order, graph, uses and times.
        resident: `[storages]`, live-in storages on the device when the step starts.
        pinned: `[storages]`, never evicted.
        memory: bytes.
        bias: `[storages]`, factor on the time of a storage's next use; above 1 leaves sooner.
        absences: filled.
        reuses_buffer_of: `[slots]`, filled with the storage whose buffer the op in the slot reuses, or -1.
        resident_at_end: `[storages]`, filled: persistent storages on the device after the last slot.
        eviction: scratch.

    Returns:
        The number of absences and -1, or, if slot `i` cannot be made to fit, 0 and `i`.
    """
    order, arrays, uses, clock = inputs.order, inputs.arrays, inputs.uses, inputs.clock
    work, lead, avoid_late_copies = inputs.work, inputs.lead, inputs.avoid_late_copies
    # tuples are unpacked once: inside a loop, that would cost more than the rest of the loop
    start, slot, writes, reusable_buffer = uses.start, uses.slot, uses.writes, uses.reused_buffer
    touched, creates, sizes, persistent, live_out = (
        arrays.touches,
        arrays.creates,
        arrays.bytes,
        arrays.persistent,
        arrays.live_out,
    )
    first, items = touched.start, touched.items
    state, valid, cursor, written = eviction.state, eviction.valid, eviction.cursor, eviction.written
    absence, returns, needed_in = eviction.absence, eviction.returns, eviction.needed_in
    reload_head, following, next_uses = eviction.head, eviction.following, eviction.next_uses
    incoming, outgoing = eviction.calendar, eviction.outgoing
    head, after, before, listed_at, bits = (
        next_uses.head,
        next_uses.after,
        next_uses.before,
        next_uses.slot,
        next_uses.bits,
    )
    in_booked, in_free, in_slot = incoming.booked, incoming.free, incoming.slot
    out_booked, out_free = outgoing.booked, outgoing.free
    storage, ready, release = absences.storage, absences.ready, absences.release
    reload, needed, copied = absences.reload, absences.use, absences.copy
    n, m = order.shape[0], sizes.shape[0]
    total = clock[n]
    width = open_calendar(clock, incoming)
    if avoid_late_copies:
        open_calendar(clock, outgoing)
    clear(next_uses)
    used = 0
    count = open_step(inputs, resident, False, absences, eviction, width)
    for s in range(m):
        if state[s] == ON_DEVICE:
            used += sizes[s]
            if not pinned[s]:
                v = _next_use(start, slot, cursor, persistent, clock, bias, in_slot, width, s)
                join(head, after, before, listed_at, bits, s, v)
    for i in range(n):
        op = order[i]
        for k in range(first[op], first[op + 1]):
            needed_in[items[k]] = i
        k = reload_head[i]
        while k >= 0:
            s = storage[k]
            state[s], returns[s] = ON_DEVICE, needed[k]
            used += sizes[s]
            if not pinned[s]:
                v = _next_use(start, slot, cursor, persistent, clock, bias, in_slot, width, s)
                join(head, after, before, listed_at, bits, s, v)
            k = following[k]
        reuses_buffer_of[i] = -1
        reused_buffer = reusable_buffer[i]
        for k in range(first[op], first[op + 1]):
            s = items[k]
            if state[s] != NOT_CREATED:
                continue
            state[s] = ON_DEVICE
            if reused_buffer >= 0 and s == creates[op] and returns[reused_buffer] < i:
                reuses_buffer_of[i], state[reused_buffer] = reused_buffer, DEAD
                leave(head, after, before, listed_at, bits, reused_buffer)
            else:
                used += sizes[s]
        while used > memory:
            # the storage with the furthest next use that can leave and return in time; if none of the few furthest can,
            # the least late of them
            chosen, least_late, examined = -1, np.inf, 0
            v = furthest(bits, 2 * n)
            while v >= 0 and examined < _MAX_EXAMINED:
                s = head[v]
                while s >= 0 and examined < _MAX_EXAMINED:
                    if needed_in[s] != i:
                        examined += 1
                        late, c = 0.0, cursor[s]
                        if returns[s] <= i:
                            if c < start[s + 1] and clock[slot[c]] - clock[i] < 2 * lead * work[s]:
                                late = _TOO_SOON - (clock[slot[c]] - clock[i])
                            if avoid_late_copies and not valid[s]:
                                done = finish_ahead(out_booked, out_free, width, work[s], clock[written[s] + 1], False)
                                late += max(0.0, min(done, 2 * total) - clock[i])
                        if late < least_late:
                            chosen, least_late = s, late
                        if late <= 0:
                            examined = _MAX_EXAMINED
                    s = after[s]
                v = furthest(bits, v - 1)
            s = chosen
            if s < 0:
                return 0, i
            state[s] = ON_HOST
            leave(head, after, before, listed_at, bits, s)
            used -= sizes[s]
            if returns[s] > i:  # its reload is not needed yet: postponing it moves no data
                returns[s] = -1
                k = absence[s]
                q = i + max(1, (needed[k] - i) // 2)
                reload[k], following[k], reload_head[q] = q, reload_head[q], k
                continue
            storage[count], ready[count], release[count] = s, written[s], i
            copied[count] = not valid[s]
            if avoid_late_copies and not valid[s]:
                finish_ahead(out_booked, out_free, width, work[s], clock[written[s] + 1], True)
            valid[s], absence[s] = True, count
            if cursor[s] < start[s + 1]:
                v = slot[cursor[s]]
                needed[count] = v
                q = reserve(in_booked, in_free, in_slot, width, work[s] * lead, clock[i], clock[v])
                q = min(max(q, i + 1), v)
                reload[count], following[count], reload_head[q] = q, reload_head[q], count
            else:
                reload[count], needed[count] = NEVER, NEVER
            count += 1
        for k in range(first[op], first[op + 1]):
            s = items[k]
            if state[s] != ON_DEVICE:
                continue
            c = cursor[s]
            if writes[c]:
                valid[s], written[s] = False, i
            cursor[s] = c + 1
            leave(head, after, before, listed_at, bits, s)
            if c + 1 == start[s + 1] and not persistent[s] and not live_out[s]:
                state[s] = DEAD
                used -= sizes[s]
            elif not pinned[s]:
                v = _next_use(start, slot, cursor, persistent, clock, bias, in_slot, width, s)
                join(head, after, before, listed_at, bits, s, v)
    for s in range(m):
        resident_at_end[s] = persistent[s] and state[s] == ON_DEVICE
        if resident_at_end[s] and not resident[s]:  # it starts the step on the host, so it must end there
            storage[count], ready[count], release[count] = s, written[s], n
            reload[count], needed[count], copied[count] = NEVER, NEVER, not valid[s]
            count += 1
    return count, -1


@kernel
def _next_use(
    start: Ints,
    slot: Ints,
    cursor: Ints,
    persistent: Flags,
    clock: Seconds,
    bias: Seconds,
    in_slot: Ints,
    width: float,
    s: int,
) -> int:
    """The slot to list a storage under: that of its next use, plus `n` if that is in the next step; `2 n` for never."""
    n, c = clock.shape[0] - 1, cursor[s]
    if c < start[s + 1]:
        v = slot[c]
    elif persistent[s]:
        v = n + slot[start[s]]
    else:
        v = 2 * n
    if bias[s] == 1.0:
        return int(v)
    total = clock[n]
    missed = bias[s] * (total + clock[v - n] if v >= n else clock[v])
    nearest = slot_at(in_slot, width, missed) if missed < total else n + slot_at(in_slot, width, missed - total)
    return int(min(nearest, 2 * n))
