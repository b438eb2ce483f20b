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

_UNMADE, _HERE, _AWAY, _DONE = 0, 1, 2, 3
_BUCKETS = 4096
_TOO_SOON = 1e6


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


@njit(cache=True, nogil=True)
def walk(
    order: Ints,
    flow: Flow,
    uses: Uses,
    clock: Seconds,
    resident: Flags,
    pinned: Flags,
    memory: int,
    work: Seconds,
    lead: float,
    bias: Seconds,
    gaps: Gaps,
    inherits: Ints,
    stays: Flags,
    desk: Desk,
) -> tuple[int, int]:
    """Walk the slots once; allocates nothing.

    Args:
        order: `[ops]`, the op in each slot.
        flow, uses: the graph, and when this order touches each storage.
        clock: `[slots + 1]`, when each slot is thought to begin, and the end.
        resident: `[storages]`, held storages on the device when the step starts.
        pinned: `[storages]`, never to be evicted.
        memory: bytes.
        work: `[storages]`, seconds on the link.
        lead: a reload is given this many times its work.
        bias: `[storages]`, factor on the time until the next use; above 1 leaves sooner.
        gaps: filled.
        inherits: `[slots]`, filled with the storage whose memory the op in the slot takes over, or -1.
        stays: `[storages]`, filled: held storages on the device when the step ends.
        desk: scratch.

    Returns:
        The number of gaps and -1, or where slot `i` cannot be made to fit, 0 and `i`.
    """
    n, m = order.shape[0], flow.bytes.shape[0]
    total = clock[n]
    width = open_calendar(clock, desk)
    state, valid, cursor, written = desk.state, desk.valid, desk.cursor, desk.written
    gap, returns, here, place = desk.gap, desk.returns, desk.here, desk.place
    head, following = desk.head, desk.following
    head[:] = -1
    used = 0
    count = living = 0
    for s in range(m):
        state[s], valid[s], cursor[s], written[s] = _UNMADE, False, uses.start[s], -1
        gap[s], returns[s], desk.pinned[s] = -1, -1, -1
        if flow.held[s] and uses.start[s] < uses.start[s + 1]:
            if resident[s]:
                state[s], valid[s] = _HERE, not flow.updated[s]
                used += flow.bytes[s]
                place[s], here[living] = living, s
                living += 1
            else:
                state[s], valid[s] = _AWAY, True
    for i in range(n):
        op = order[i]
        for k in range(flow.reads.start[op] + flow.writes.start[op], flow.reads.start[op + 1] + flow.writes.start[op + 1]):
            s = _touched(flow, op, k)
            if state[s] == _AWAY and gap[s] < 0 and uses.slot[uses.start[s]] == i:
                q = min(book(desk, width, work[s] * lead, 0.0, clock[i]), i)
                gaps.storage[count], gaps.ready[count], gaps.release[count] = s, -1, -1
                gaps.reload[count], gaps.use[count], gaps.copy[count] = q, i, False
                gap[s], following[count], head[q] = count, head[q], count
                count += 1
    for i in range(n):
        op = order[i]
        first = flow.reads.start[op] + flow.writes.start[op]
        last = flow.reads.start[op + 1] + flow.writes.start[op + 1]
        for k in range(first, last):
            desk.pinned[_touched(flow, op, k)] = i
        k = head[i]
        while k >= 0:
            s = gaps.storage[k]
            state[s], returns[s] = _HERE, gaps.use[k]
            used += flow.bytes[s]
            place[s], here[living] = living, s
            living += 1
            k = following[k]
        inherits[i] = -1
        donor = uses.donor[i]
        for k in range(first, last):
            s = _touched(flow, op, k)
            if state[s] != _UNMADE or flow.bytes[s] == 0:
                continue
            state[s] = _HERE
            if donor >= 0 and s == flow.creates[op] and returns[donor] < i:
                inherits[i] = donor
                state[donor] = _DONE
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
                        score -= _TOO_SOON
                elif flow.stateful[s]:
                    score = (total + clock[uses.slot[uses.start[s]]] - clock[i]) * bias[s]
                else:
                    score = (2 * total - clock[i]) * bias[s]
                if score > furthest:
                    victim, furthest = s, score
            if victim < 0:
                return 0, i
            s = victim
            state[s] = _AWAY
            used -= flow.bytes[s]
            living -= 1
            here[place[s]] = here[living]
            place[here[living]] = place[s]
            if returns[s] > i:  # its copy has not been needed yet: put it off, which moves nothing
                k = gap[s]
                q = i + max(1, (gaps.use[k] - i) // 4)
                gaps.reload[k], following[k], head[q] = q, head[q], k
                returns[s] = -1
                continue
            gaps.storage[count], gaps.ready[count], gaps.release[count] = s, written[s], i
            gaps.copy[count] = not valid[s]
            valid[s] = True
            if cursor[s] < uses.start[s + 1]:
                v = uses.slot[cursor[s]]
                q = min(max(book(desk, width, work[s] * lead, clock[i], clock[v]), i + 1), v)
                gaps.reload[count], gaps.use[count], following[count], head[q] = q, v, head[q], count
            else:
                gaps.reload[count], gaps.use[count] = NEVER, NEVER
            gap[s] = count
            count += 1
        for k in range(first, last):
            s = _touched(flow, op, k)
            if state[s] != _HERE:
                continue
            c = cursor[s]
            if c < uses.start[s + 1] and uses.slot[c] == i:
                if uses.writes[c]:
                    valid[s], written[s] = False, i
                cursor[s] = c + 1
                if c + 1 == uses.start[s + 1] and not flow.stateful[s] and not flow.kept[s]:
                    state[s] = _DONE
                    used -= flow.bytes[s]
                    living -= 1
                    here[place[s]] = here[living]
                    place[here[living]] = place[s]
    for s in range(m):
        stays[s] = flow.stateful[s] and state[s] == _HERE
        if stays[s] and not resident[s]:  # it began the step on the host, so it ends there
            gaps.storage[count], gaps.ready[count], gaps.release[count] = s, written[s], n
            gaps.reload[count], gaps.use[count], gaps.copy[count] = NEVER, NEVER, not valid[s]
            count += 1
    return count, -1


@njit(cache=True, nogil=True, inline="always")
def _touched(flow: Flow, op: int, k: int) -> int:
    """Entry `k` of an op's reads followed by its writes, counted from where both lists begin."""
    k -= flow.writes.start[op]
    if k < flow.reads.start[op + 1]:
        return flow.reads.items[k]
    return flow.writes.items[k - flow.reads.start[op + 1] + flow.writes.start[op]]
