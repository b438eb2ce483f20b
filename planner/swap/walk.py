"""The calendar walk: one pass over the slots that decides what leaves the device, when, and when it comes back.

Belady's rule by time, not by count: the storage whose next use is furthest leaves. What makes it work on a link is
the calendar: an eviction at once reserves its way back, as late before the next use as the in-link is free.
SwapAdvisor (ASPLOS 2020) section 4.2 has the two-pass walk this one grew out of; it knows neither time nor the link.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from planner.swap.problem import Bytes, Flags, Flow, Ints, Seconds
from planner.swap.uses import Uses

#: A reload that never happens.
NEVER = np.int32(2**31 - 1)

UNMADE, HERE, AWAY, DONE = 0, 1, 2, 3
_BUCKETS = 4096
TOO_SOON = 1e6


class Gaps(NamedTuple):
    """Spans in which storages are away from the device.

    Storage `storage[k]` may be copied out once slot `ready[k]` is done (where `copy[k]`; its host copy is still valid
    otherwise), its memory is free from slot `release[k]` (-1: since before the step), reserved again from slot
    `reload[k]` (`NEVER`: it does not come back) and needed in slot `use[k]`.
    """

    storage: Ints
    ready: Ints
    release: Ints
    reload: Ints
    use: Ints
    copy: Flags


class Route(NamedTuple):
    """What a walk follows: the op in each slot, the graph, when storages are touched, and what is thought of time.

    `clock[i]` is when slot `i` is thought to begin, its last entry the end; `work[s]` is how many seconds storage `s`
    takes on the link, and a reload is given `lead` times that.
    """

    order: Ints
    flow: Flow
    uses: Uses
    clock: Seconds
    work: Seconds
    lead: float


class Desk(NamedTuple):
    """Scratch of one walk, so that a walk allocates nothing."""

    state: Ints
    valid: Flags
    cursor: Ints
    written: Ints
    gap: Ints
    returns: Ints
    pinned: Ints
    here: Ints
    place: Ints
    head: Ints
    following: Ints
    booked: Seconds
    free: Ints
    slot_at: Ints


def blank_gaps(touches: int, storages: int) -> Gaps:
    """Room for all gaps of a walk: at most one before each use and two at the ends."""
    room = touches + 2 * storages
    return Gaps(*(np.empty(room, np.int32) for _ in range(5)), np.empty(room, np.bool_))


def blank_desk(ops: int, storages: int, gaps: int) -> Desk:
    """Scratch for walks over a graph of this size."""
    per_storage = [np.empty(storages, np.int32) for _ in range(7)]
    state, cursor, written, gap, returns, pinned, here = per_storage
    return Desk(
        state, np.empty(storages, np.bool_), cursor, written, gap, returns, pinned, here,
        np.empty(storages, np.int32), np.empty(ops + 1, np.int32), np.empty(gaps, np.int32),
        np.empty(_BUCKETS), np.empty(_BUCKETS + 1, np.int32), np.empty(_BUCKETS, np.int32),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def open_calendar(clock: Seconds, desk: Desk) -> float:
    """Empty the calendar of the in-link; returns the width of its buckets in seconds."""
    n = clock.shape[0] - 1
    width = max(clock[n], 1e-30) / _BUCKETS
    slot = 0
    for b in range(_BUCKETS):
        while slot + 1 < n and clock[slot + 1] <= b * width:
            slot += 1
        desk.slot_at[b] = slot
        desk.booked[b] = 0.0
        desk.free[b + 1] = b + 1
    desk.free[0] = 0
    return width


@njit(cache=True, nogil=True)
def book(desk: Desk, width: float, seconds: float, earliest: float, until: float) -> int:
    """Reserve the in-link for some seconds, as late as possible before `until`; returns the slot to begin in.

    Where there is no room back to `earliest`, the copy begins there.
    """
    free, booked = desk.free, desk.booked
    low = int(earliest / width)
    b = min(int(until / width), _BUCKETS)  # bucket b - 1 is the last that ends by then
    left = seconds
    while True:
        root = b
        while free[root] != root:
            root = free[root]
        while free[b] != root:
            free[b], b = root, free[b]
        b = root
        if b <= low:
            return desk.slot_at[min(low, _BUCKETS - 1)]
        room = width - booked[b - 1]
        if left < room:
            booked[b - 1] += left
            return desk.slot_at[b - 1]
        booked[b - 1] = width
        free[b] = b - 1
        left -= room


@njit(cache=True, nogil=True, inline="always")
def touches(flow: Flow, op: int) -> tuple[int, int]:
    """The range of `k` for `touched`."""
    return flow.reads.start[op] + flow.writes.start[op], flow.reads.start[op + 1] + flow.writes.start[op + 1]


@njit(cache=True, nogil=True, inline="always")
def touched(flow: Flow, op: int, k: int) -> int:
    """The storages an op reads, then those it writes; some appear in both."""
    k -= flow.writes.start[op]
    if k < flow.reads.start[op + 1]:
        return flow.reads.items[k]
    return flow.writes.items[k - flow.reads.start[op + 1] + flow.writes.start[op]]


@njit(cache=True, nogil=True)
def open_step(route: Route, resident: Flags, on_demand: bool, gaps: Gaps, desk: Desk, width: float) -> int:
    """Put every storage where it is when the step starts and plan the way in of what is away; returns that many gaps."""
    order, flow, uses, clock, work, lead = route
    desk.head[:] = -1
    for s in range(flow.bytes.shape[0]):
        desk.state[s], desk.valid[s], desk.cursor[s], desk.written[s] = UNMADE, False, uses.start[s], -1
        desk.gap[s], desk.returns[s], desk.pinned[s] = -1, -1, -1
        if flow.held[s] and uses.start[s] < uses.start[s + 1]:
            desk.state[s] = HERE if resident[s] else AWAY
            desk.valid[s] = not (resident[s] and flow.updated[s])
    count = 0
    for i in range(order.shape[0]):
        first, last = touches(flow, order[i])
        for k in range(first, last):
            s = touched(flow, order[i], k)
            if desk.state[s] == AWAY and desk.gap[s] < 0 and uses.slot[uses.start[s]] == i:
                q = i if on_demand else min(book(desk, width, work[s] * lead, 0.0, clock[i]), i)
                gaps.storage[count], gaps.ready[count], gaps.release[count] = s, -1, -1
                gaps.use[count], gaps.copy[count] = i, False
                desk.gap[s] = count
                arrive(gaps, desk, count, q)
                count += 1
    return count


@njit(cache=True, nogil=True, inline="always")
def arrive(gaps: Gaps, desk: Desk, k: int, slot: int) -> None:
    """Let gap `k` end with a reload that begins in this slot."""
    gaps.reload[k] = slot
    desk.following[k] = desk.head[slot]
    desk.head[slot] = k


@njit(cache=True, nogil=True, inline="always")
def put_off(gaps: Gaps, desk: Desk, s: int, i: int) -> None:
    """Let a reload that has not been needed by slot `i` begin later, but not so little later that it is met each slot."""
    k = desk.gap[s]
    desk.returns[s] = -1
    arrive(gaps, desk, k, i + max(1, (gaps.use[k] - i) // 4))


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
    width = open_calendar(clock, desk)
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
        first, last = touches(flow, op)
        for k in range(first, last):
            desk.pinned[touched(flow, op, k)] = i
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
            s = touched(flow, op, k)
            if state[s] != UNMADE or flow.bytes[s] == 0:
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
                arrive(gaps, desk, count, min(max(book(desk, width, work[s] * lead, clock[i], clock[v]), i + 1), v))
            else:
                gaps.reload[count], gaps.use[count] = NEVER, NEVER
            gap[s] = count
            count += 1
        for k in range(first, last):
            s = touched(flow, op, k)
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
