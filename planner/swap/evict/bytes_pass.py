"""The calendar walk: one pass over the slots that decides what leaves the device, when, and when it comes back.

Belady's rule by time, not by count: the storage whose next use is furthest leaves. What makes it work on a link is
the calendar: an eviction at once reserves its way back, as late before the next use as the in-link is free.
SwapAdvisor (ASPLOS 2020) section 4.2 has the two-pass walk this one grew out of; it knows neither time nor the link.
"""

from __future__ import annotations

import numpy as np

from planner.kernels import kernel
from planner.swap.draft.absences import NEVER, Gaps
from planner.swap.evict.link_calendar import book, finish_ahead, open_calendar, slot_at
from planner.swap.evict.next_use_queue import clear, furthest, join, leave
from planner.swap.evict.state import AWAY, DONE, HERE, UNMADE, Desk, Route, open_step
from planner.swap.problem.problem import Flags, Ints, Seconds

#: Lateness of a storage that cannot be back in time.
_TOO_SOON = 1e6
#: Among how many storages one is looked for that is not late at all.
_LOOKED_AT = 32


@kernel
def walk(
    route: Route,
    resident: Flags,
    pinned: Flags,
    memory: int,
    bias: Seconds,
    gaps: Gaps,
    inherits: Ints,
    stays: Flags,
    desk: Desk,
) -> tuple[int, int]:
    """Walk the slots once; allocates nothing.

    Args:
        route: what to follow.
        resident: `[storages]`, held storages on the device when the step starts.
        pinned: `[storages]`, never to be evicted.
        memory: bytes.
        bias: `[storages]`, factor on the time of a storage's next use; above 1 leaves sooner.
        gaps: filled.
        inherits: `[slots]`, filled with the storage whose memory the op in the slot takes over, or -1.
        stays: `[storages]`, filled: held storages on the device when the step ends.
        desk: scratch.

    Returns:
        The number of gaps and -1, or where slot `i` cannot be made to fit, 0 and `i`.
    """
    order, flow, uses, clock, work, lead, heed = route[:7]
    # tuples are unpacked once: in a loop, that would cost more than what the loop does
    start, slot, writes, donors = uses.start, uses.slot, uses.writes, uses.donor
    touched, creates, sizes, stateful, kept = flow.touches, flow.creates, flow.bytes, flow.stateful, flow.kept
    first, items = touched.start, touched.items
    state, valid, cursor, written, gap, returns, busy, arriving, following, listed, incoming, outgoing = desk
    head, after, before, listed_at, bits = listed
    in_booked, in_free, in_slot = incoming
    out_booked, out_free, _ = outgoing
    away, ready, release, reload, needed, copied = gaps
    n, m = order.shape[0], sizes.shape[0]
    total = clock[n]
    width = open_calendar(clock, incoming)
    if heed:
        open_calendar(clock, outgoing)
    clear(listed)
    used = 0
    count = open_step(route, resident, False, gaps, desk, width)
    for s in range(m):
        if state[s] == HERE:
            used += sizes[s]
            if not pinned[s]:
                v = _next_use(start, slot, cursor, stateful, clock, bias, in_slot, width, s)
                join(head, after, before, listed_at, bits, s, v)
    for i in range(n):
        op = order[i]
        for k in range(first[op], first[op + 1]):
            busy[items[k]] = i
        k = arriving[i]
        while k >= 0:
            s = away[k]
            state[s], returns[s] = HERE, needed[k]
            used += sizes[s]
            if not pinned[s]:
                v = _next_use(start, slot, cursor, stateful, clock, bias, in_slot, width, s)
                join(head, after, before, listed_at, bits, s, v)
            k = following[k]
        inherits[i] = -1
        donor = donors[i]
        for k in range(first[op], first[op + 1]):
            s = items[k]
            if state[s] != UNMADE:
                continue
            state[s] = HERE
            if donor >= 0 and s == creates[op] and returns[donor] < i:
                inherits[i], state[donor] = donor, DONE
                leave(head, after, before, listed_at, bits, donor)
            else:
                used += sizes[s]
        while used > memory:
            # the storage that is missed last of those that leave and return in time; where none of the few that are
            # missed last is in time, the one of them that is least late
            chosen, least, looked = -1, np.inf, 0
            v = furthest(bits, 2 * n)
            while v >= 0 and looked < _LOOKED_AT:
                s = head[v]
                while s >= 0 and looked < _LOOKED_AT:
                    if busy[s] != i:
                        looked += 1
                        late, c = 0.0, cursor[s]
                        if returns[s] <= i:
                            if c < start[s + 1] and clock[slot[c]] - clock[i] < 2 * lead * work[s]:
                                late = _TOO_SOON - (clock[slot[c]] - clock[i])
                            if heed and not valid[s]:
                                done = finish_ahead(out_booked, out_free, width, work[s], clock[written[s] + 1], False)
                                late += max(0.0, min(done, 2 * total) - clock[i])
                        if late < least:
                            chosen, least = s, late
                        if late <= 0:
                            looked = _LOOKED_AT
                    s = after[s]
                v = furthest(bits, v - 1)
            s = chosen
            if s < 0:
                return 0, i
            state[s] = AWAY
            leave(head, after, before, listed_at, bits, s)
            used -= sizes[s]
            if returns[s] > i:  # its copy has not been needed yet: put it off, which moves nothing
                returns[s] = -1
                k = gap[s]
                q = i + max(1, (needed[k] - i) // 2)
                reload[k], following[k], arriving[q] = q, arriving[q], k
                continue
            away[count], ready[count], release[count] = s, written[s], i
            copied[count] = not valid[s]
            if heed and not valid[s]:
                finish_ahead(out_booked, out_free, width, work[s], clock[written[s] + 1], True)
            valid[s], gap[s] = True, count
            if cursor[s] < start[s + 1]:
                v = slot[cursor[s]]
                needed[count] = v
                q = book(in_booked, in_free, in_slot, width, work[s] * lead, clock[i], clock[v])
                q = min(max(q, i + 1), v)
                reload[count], following[count], arriving[q] = q, arriving[q], count
            else:
                reload[count], needed[count] = NEVER, NEVER
            count += 1
        for k in range(first[op], first[op + 1]):
            s = items[k]
            if state[s] != HERE:
                continue
            c = cursor[s]
            if writes[c]:
                valid[s], written[s] = False, i
            cursor[s] = c + 1
            leave(head, after, before, listed_at, bits, s)
            if c + 1 == start[s + 1] and not stateful[s] and not kept[s]:
                state[s] = DONE
                used -= sizes[s]
            elif not pinned[s]:
                v = _next_use(start, slot, cursor, stateful, clock, bias, in_slot, width, s)
                join(head, after, before, listed_at, bits, s, v)
    for s in range(m):
        stays[s] = stateful[s] and state[s] == HERE
        if stays[s] and not resident[s]:  # it began the step on the host, so it ends there
            away[count], ready[count], release[count] = s, written[s], n
            reload[count], needed[count], copied[count] = NEVER, NEVER, not valid[s]
            count += 1
    return count, -1


@kernel
def _next_use(
    start: Ints,
    slot: Ints,
    cursor: Ints,
    stateful: Flags,
    clock: Seconds,
    bias: Seconds,
    in_slot: Ints,
    width: float,
    s: int,
) -> int:
    """The slot by which a storage is listed: that of its next use, in the next step from `n` on, or `2 n` for never."""
    n, c = clock.shape[0] - 1, cursor[s]
    if c < start[s + 1]:
        v = slot[c]
    elif stateful[s]:
        v = n + slot[start[s]]
    else:
        v = 2 * n
    if bias[s] == 1.0:
        return int(v)
    total = clock[n]
    missed = bias[s] * (total + clock[v - n] if v >= n else clock[v])
    nearest = slot_at(in_slot, width, missed) if missed < total else n + slot_at(in_slot, width, missed - total)
    return int(min(nearest, 2 * n))
