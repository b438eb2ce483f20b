"""The calendar walk: one pass over the slots that decides what leaves the device, when, and when it comes back.

Belady's rule by time, not by count: the storage whose next use is furthest leaves. What makes it work on a link is
the calendar: an eviction at once reserves its way back, as late before the next use as the in-link is free.
SwapAdvisor (ASPLOS 2020) section 4.2 has the two-pass walk this one grew out of; it knows neither time nor the link.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from planner.swap.desk import AWAY, DONE, HERE, TOO_SOON, UNMADE, Desk, Route, arrive, open_step, put_off
from planner.swap.gaps import NEVER, Gaps
from planner.swap.problem import Flags, Ints, Seconds
from planner.swap.reserve import book, open_calendar


@njit(cache=True, nogil=True)
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
        bias: `[storages]`, factor on the time until the next use; above 1 leaves sooner.
        gaps: filled.
        inherits: `[slots]`, filled with the storage whose memory the op in the slot takes over, or -1.
        stays: `[storages]`, filled: held storages on the device when the step ends.
        desk: scratch.

    Returns:
        The number of gaps and -1, or where slot `i` cannot be made to fit, 0 and `i`.
    """
    order, flow, uses, clock, work, lead = route
    n, m = order.shape[0], flow.bytes.shape[0]
    total = clock[n]
    width = open_calendar(clock, desk.calendar)
    state, valid, cursor, written = desk.state, desk.valid, desk.cursor, desk.written
    gap, returns, here, place = desk.gap, desk.returns, desk.here, desk.place
    head, following = desk.head, desk.following
    used = 0
    living = 0
    count = open_step(route, resident, False, gaps, desk, width)
    for s in range(m):
        if state[s] == HERE:
            used += flow.bytes[s]
            place[s], here[living] = living, s
            living += 1
    for i in range(n):
        op = order[i]
        first, last = flow.touches.start[op], flow.touches.start[op + 1]
        for k in range(first, last):
            desk.pinned[flow.touches.items[k]] = i
        k = head[i]
        while k >= 0:
            s = gaps.storage[k]
            state[s], returns[s] = HERE, gaps.use[k]
            used += flow.bytes[s]
            place[s], here[living] = living, s
            living += 1
            k = following[k]
        inherits[i] = -1
        donor = uses.donor[i]
        for k in range(first, last):
            s = flow.touches.items[k]
            if state[s] != UNMADE:
                continue
            state[s] = HERE
            if donor >= 0 and s == flow.creates[op] and returns[donor] < i:
                inherits[i] = donor
                state[donor] = DONE
                place[s], here[place[donor]] = place[donor], s
            else:
                used += flow.bytes[s]
                place[s], here[living] = living, s
                living += 1
        while used > memory:
            victim, furthest = -1, -np.inf
            for a in range(living):
                s = here[a]
                if desk.pinned[s] == i or pinned[s]:
                    continue
                c = cursor[s]
                if c < uses.start[s + 1]:
                    ahead = clock[uses.slot[c]] - clock[i]
                    score = ahead * bias[s]
                    if returns[s] <= i and ahead < 2 * lead * work[s]:
                        score -= TOO_SOON
                elif flow.stateful[s]:
                    score = (total + clock[uses.slot[uses.start[s]]] - clock[i]) * bias[s]
                else:
                    score = (2 * total - clock[i]) * bias[s]
                if score > furthest:
                    victim, furthest = s, score
            if victim < 0:
                return 0, i
            s = victim
            state[s] = AWAY
            used -= flow.bytes[s]
            living -= 1
            here[place[s]] = here[living]
            place[here[living]] = place[s]
            if returns[s] > i:  # its copy has not been needed yet: put it off, which moves nothing
                put_off(gaps, desk, s, i)
                continue
            gaps.storage[count], gaps.ready[count], gaps.release[count] = s, written[s], i
            gaps.copy[count] = not valid[s]
            valid[s] = True
            if cursor[s] < uses.start[s + 1]:
                v = uses.slot[cursor[s]]
                gaps.use[count] = v
                q = book(desk.calendar, width, work[s] * lead, clock[i], clock[v])
                arrive(gaps, desk, count, min(max(q, i + 1), v))
            else:
                gaps.reload[count], gaps.use[count] = NEVER, NEVER
            gap[s] = count
            count += 1
        for k in range(first, last):
            s = flow.touches.items[k]
            if state[s] != HERE:
                continue
            c = cursor[s]
            if c < uses.start[s + 1] and uses.slot[c] == i:
                if uses.writes[c]:
                    valid[s], written[s] = False, i
                cursor[s] = c + 1
                if c + 1 == uses.start[s + 1] and not flow.stateful[s] and not flow.kept[s]:
                    state[s] = DONE
                    used -= flow.bytes[s]
                    living -= 1
                    here[place[s]] = here[living]
                    place[here[living]] = place[s]
    for s in range(m):
        stays[s] = flow.stateful[s] and state[s] == HERE
        if stays[s] and not resident[s]:  # it began the step on the host, so it ends there
            gaps.storage[count], gaps.ready[count], gaps.release[count] = s, written[s], n
            gaps.reload[count], gaps.use[count], gaps.copy[count] = NEVER, NEVER, not valid[s]
            count += 1
    return count, -1
