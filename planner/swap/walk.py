"""The calendar walk: one pass over the slots that decides what leaves the device, when, and when it comes back.

Belady's rule by time, not by count: the storage whose next use is furthest leaves. What makes it work on a link is
the calendar: an eviction at once reserves its way back, as late before the next use as the in-link is free.
SwapAdvisor (ASPLOS 2020) section 4.2 has the two-pass walk this one grew out of; it knows neither time nor the link.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from planner.swap.desk import AWAY, DONE, HERE, UNMADE, Desk, Route, arrive, open_step, put_off
from planner.swap.gaps import NEVER, Gaps
from planner.swap.problem import Flags, Ints, Seconds
from planner.swap.queue import pop_last, push
from planner.swap.reserve import book, finish_ahead, open_calendar

#: Lateness of a storage that cannot be back in time.
_TOO_SOON = 1e6
#: Among how many storages one is looked for that is not late at all.
_LOOKED_AT = 32


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
        bias: `[storages]`, factor on the time of a storage's next use; above 1 leaves sooner.
        gaps: filled.
        inherits: `[slots]`, filled with the storage whose memory the op in the slot takes over, or -1.
        stays: `[storages]`, filled: held storages on the device when the step ends.
        desk: scratch.

    Returns:
        The number of gaps and -1, or where slot `i` cannot be made to fit, 0 and `i`.
    """
    order, flow, uses, clock, work, lead, heed = route
    n, m = order.shape[0], flow.bytes.shape[0]
    width = open_calendar(clock, desk.calendar)
    open_calendar(clock, desk.outgoing)
    state, valid, cursor, written, gap, returns = (
        desk.state, desk.valid, desk.cursor, desk.written, desk.gap, desk.returns,
    )  # fmt: skip
    used = queued = 0
    count = open_step(route, resident, False, gaps, desk, width)
    for s in range(m):
        if state[s] == HERE:
            used += flow.bytes[s]
            queued = _enqueue(route, pinned, bias, desk, s, queued)
    for i in range(n):
        op = order[i]
        first, last = flow.touches.start[op], flow.touches.start[op + 1]
        for k in range(first, last):
            desk.pinned[flow.touches.items[k]] = i
        k = desk.head[i]
        while k >= 0:
            s = gaps.storage[k]
            state[s], returns[s] = HERE, gaps.use[k]
            used += flow.bytes[s]
            queued = _enqueue(route, pinned, bias, desk, s, queued)
            k = desk.following[k]
        inherits[i] = -1
        donor = uses.donor[i]
        for k in range(first, last):
            s = flow.touches.items[k]
            if state[s] != UNMADE:
                continue
            state[s] = HERE
            if donor >= 0 and s == flow.creates[op] and returns[donor] < i:
                inherits[i], state[donor] = donor, DONE
            else:
                used += flow.bytes[s]
        spared = 0
        while used > memory:
            s, queued, spared = _choose(route, desk, width, i, queued, spared)
            if s < 0:
                return 0, i
            state[s] = AWAY
            used -= flow.bytes[s]
            if returns[s] > i:  # its copy has not been needed yet: put it off, which moves nothing
                put_off(gaps, desk, s, i)
                continue
            gaps.storage[count], gaps.ready[count], gaps.release[count] = s, written[s], i
            gaps.copy[count] = not valid[s]
            if heed and not valid[s]:
                finish_ahead(desk.outgoing, width, work[s], clock[written[s] + 1], True)
            valid[s], gap[s] = True, count
            if cursor[s] < uses.start[s + 1]:
                v = uses.slot[cursor[s]]
                gaps.use[count] = v
                q = book(desk.calendar, width, work[s] * lead, clock[i], clock[v])
                arrive(gaps, desk, count, min(max(q, i + 1), v))
            else:
                gaps.reload[count], gaps.use[count] = NEVER, NEVER
            count += 1
        for k in range(spared):
            s = desk.spared[k]
            if state[s] == HERE:
                queued = _enqueue(route, pinned, bias, desk, s, queued)
        for k in range(first, last):
            s = flow.touches.items[k]
            if state[s] != HERE:
                continue
            c = cursor[s]
            if uses.writes[c]:
                valid[s], written[s] = False, i
            cursor[s] = c + 1
            if c + 1 == uses.start[s + 1] and not flow.stateful[s] and not flow.kept[s]:
                state[s] = DONE
                used -= flow.bytes[s]
            else:
                queued = _enqueue(route, pinned, bias, desk, s, queued)
    for s in range(m):
        stays[s] = flow.stateful[s] and state[s] == HERE
        if stays[s] and not resident[s]:  # it began the step on the host, so it ends there
            gaps.storage[count], gaps.ready[count], gaps.release[count] = s, written[s], n
            gaps.reload[count], gaps.use[count], gaps.copy[count] = NEVER, NEVER, not valid[s]
            count += 1
    return count, -1


@njit(cache=True, nogil=True)
def _enqueue(route: Route, pinned: Flags, bias: Seconds, desk: Desk, s: int, queued: int) -> int:
    """Let a storage be chosen by the time of its next use; returns how many entries there are."""
    if pinned[s]:
        return queued
    uses, clock = route.uses, route.clock
    total, c = clock[clock.shape[0] - 1], desk.cursor[s]
    if c < uses.start[s + 1]:
        missed = clock[uses.slot[c]]
    elif route.flow.stateful[s]:
        missed = total + clock[uses.slot[uses.start[s]]]
    else:
        missed = 2 * total
    return push(desk.queue, queued, missed * bias[s], s, c)


@njit(cache=True, nogil=True)
def _choose(route: Route, desk: Desk, width: float, i: int, queued: int, spared: int) -> tuple[int, int, int]:
    """The storage that is missed last of those that leave and return in time, or -1, and the entries and spared ones.

    Where none is in time among the few that are missed last, the one of them that is least late. What was in the queue
    before the chosen one is noted as spared, to be queued again.
    """
    fallback, least, looked = -1, np.inf, 0
    for k in range(spared):
        s = desk.spared[k]
        if desk.state[s] == HERE and desk.pinned[s] != i:
            looked += 1
            if desk.late[s] < least:
                fallback, least = s, desk.late[s]
    while queued > 0 and (looked < _LOOKED_AT or fallback < 0):
        s, version, queued = pop_last(desk.queue, queued)
        if desk.state[s] != HERE or desk.cursor[s] != version:
            continue  # has been used or has left since
        if desk.pinned[s] != i:
            late = _lateness(route, desk, width, s, i)
            if late <= 0:
                return s, queued, spared
            looked += 1
            desk.late[s] = late
            if late < least:
                fallback, least = s, late
        desk.spared[spared] = s
        spared += 1
    return fallback, queued, spared


@njit(cache=True, nogil=True)
def _lateness(route: Route, desk: Desk, width: float, s: int, i: int) -> float:
    """Seconds by which ops would wait if a storage left now; where it cannot return in time, more than any step."""
    uses, clock, c = route.uses, route.clock, desk.cursor[s]
    if desk.returns[s] > i:
        return 0.0
    late = 0.0
    if c < uses.start[s + 1] and clock[uses.slot[c]] - clock[i] < 2 * route.lead * route.work[s]:
        late = _TOO_SOON - (clock[uses.slot[c]] - clock[i])
    if route.heed and not desk.valid[s]:
        done = finish_ahead(desk.outgoing, width, route.work[s], clock[desk.written[s] + 1], False)
        late += max(0.0, min(done, 2 * clock[clock.shape[0] - 1]) - clock[i])
    return late
