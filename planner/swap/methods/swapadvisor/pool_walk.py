"""The paper's swap planner: one pass over the slots decides whom in the pool each newcomer replaces.

SwapAdvisor (ASPLOS 2020) section 4.2: a newcomer takes a free object of its size class; where there is none, the
resident of that class leaves that is used furthest in the future, of those whose last use is long enough ago.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.kernels import inlined_kernel, kernel
from planner.swap.draft.absences import NEVER, Gaps
from planner.swap.methods.swapadvisor.pool import Pool
from planner.swap.problem.problem import Flags, Flow, Ints, Seconds
from planner.swap.problem.uses import Uses

#: Where a storage is.
UNMADE, HERE, AWAY, DONE = 0, 1, 2, 3


class Moves(NamedTuple):
    """What a walk decides, gap by gap, besides its `gaps`.

    `place[k]` is the object that gap `k` leaves (-1: none), needed by somebody else in slot `due[k]`. The object that
    its storage comes back to is free once the copy out of gap `follows[k]` is done, or, where that is -1, from slot
    `since[k]`.
    """

    place: Ints
    due: Ints
    follows: Ints
    since: Ints


class Hall(NamedTuple):
    """Scratch of one walk.

    Per storage: where it is (`state`), whether its host copy is `valid`, its next use (`cursor`, into the uses), its
    latest `gap`, the slot of its latest `reload`, and its `object`. Per object: who is in it (`guest`, -1: nobody), the
    slot of the guest's `following` use, the slot in which it was `last` used, or -1; and, in a ring per class from
    `head` on, the `vacant` objects that are `free`, longest free first.
    """

    state: Ints
    valid: Flags
    cursor: Ints
    gap: Ints
    reload: Ints
    object: Ints
    guest: Ints
    following: Ints
    last: Ints
    free: Ints
    head: Ints
    vacant: Ints


def blank_hall(storages: int) -> Hall:
    """Scratch for walks over so many storages; no class has more objects than storages."""
    room = storages + 1
    state, cursor, gap, reload, objects, guest, following, last, free, head, vacant = (
        np.empty(room, np.int32) for _ in range(11)
    )
    valid = np.empty(room, np.bool_)
    return Hall(state, valid, cursor, gap, reload, objects, guest, following, last, free, head, vacant)


def blank_moves(count: int) -> Moves:
    """Room for so many gaps."""
    return Moves(*(np.empty(count, np.int32) for _ in range(4)))


@kernel
def walk_pool(
    order: Ints,
    flow: Flow,
    uses: Uses,
    clock: Seconds,
    pool: Pool,
    threshold: Seconds,
    resident: Flags,
    home: Ints,
    gaps: Gaps,
    moves: Moves,
    inherits: Ints,
    hall: Hall,
) -> tuple[int, int]:
    """Walk the slots once; allocates nothing.

    Args:
        order, flow, uses: the op in each slot, what it touches, and when each storage is touched.
        clock: `[slots + 1]`, when each slot would begin if no op ever waited.
        pool: where the objects are.
        threshold: `[storages]`, seconds ago that a storage must have been used last to be chosen before others.
        resident: `[storages]`, held storages on the device when the step starts; one that leaves before its first use
            is taken out.
        home: `[storages]`, the object of each resident when the step starts, or -1 for any.
        gaps, moves: filled, but for `gaps.release` and `gaps.reload`, which wait for times.
        inherits: `[slots]`, filled with the storage whose object the op in the slot takes over, or -1.
        hall: scratch; its `state` and `object` say who is where at the end.

    Returns:
        The number of gaps and -1, or where the op in slot `i` does not fit the pool, 0 and `i`.
    """
    n, m = order.shape[0], flow.bytes.shape[0]
    state, guest = hall.state, hall.guest
    _open(flow, uses, pool, resident, home, hall)
    count = 0
    for i in range(n):
        op = order[i]
        start, stop = flow.touches.start[op], flow.touches.start[op + 1]
        for k in range(start, stop):
            s = flow.touches.items[k]
            if state[s] != AWAY:
                continue
            if hall.gap[s] < 0:
                gaps.storage[count], gaps.ready[count], gaps.use[count] = s, -1, i
                gaps.copy[count], moves.place[count], moves.due[count] = False, -1, -1
                hall.gap[s] = count
                count += 1
            back = hall.gap[s]
            o = _take(pool, hall, pool.class_of[s], False, home[s] if resident[s] else -1)
            moves.follows[back], moves.since[back] = -1, 0
            if o < 0:
                o = _victim(clock, pool, threshold, hall, pool.class_of[s], i)
                if o < 0:
                    return 0, i
                left = _leave(uses, resident, gaps, moves, hall, guest[o], i, count)
                if left == count:
                    count += 1
                    moves.follows[back] = left
            if moves.follows[back] < 0 or not gaps.copy[moves.follows[back]]:
                moves.follows[back], moves.since[back] = -1, hall.last[o] + 1
            _settle(hall, s, o, i)
            hall.reload[s] = i
        inherits[i] = -1
        donor = uses.donor[i]
        for k in range(start, stop):
            s = flow.touches.items[k]
            if state[s] != UNMADE:
                continue
            if donor >= 0 and s == flow.creates[op] and hall.reload[donor] < i:
                inherits[i], state[donor] = donor, DONE
                _settle(hall, s, hall.object[donor], i)
                continue
            o = _take(pool, hall, pool.class_of[s], True, -1)
            if o < 0:
                o = _victim(clock, pool, threshold, hall, pool.class_of[s], i)
                if o < 0:
                    return 0, i
                if _leave(uses, resident, gaps, moves, hall, guest[o], i, count) == count:
                    count += 1
            _settle(hall, s, o, i)
        for k in range(start, stop):
            s = flow.touches.items[k]
            if state[s] != HERE:
                continue
            c, o = hall.cursor[s], hall.object[s]
            if uses.writes[c]:
                hall.valid[s] = False
            hall.cursor[s] = c + 1
            hall.last[o] = i
            if c + 1 < uses.start[s + 1]:
                hall.following[o] = uses.slot[c + 1]
            elif flow.stateful[s]:
                hall.following[o] = n + uses.slot[uses.start[s]]
            elif flow.kept[s]:
                hall.following[o] = 2 * n
            else:
                state[s] = DONE
                _free(pool, hall, pool.class_of[s], o)
    for s in range(m):
        if flow.stateful[s] and state[s] == HERE and not resident[s]:  # it began the step on the host, so it ends there
            _leave(uses, resident, gaps, moves, hall, s, n, count)
            state[s] = HERE
            count += 1
    return count, -1


@kernel
def _open(flow: Flow, uses: Uses, pool: Pool, resident: Flags, home: Ints, hall: Hall) -> None:
    """Put every storage where it is when the step starts; who has no home and finds no object is not resident."""
    m = flow.bytes.shape[0]
    for o in range(pool.offset.shape[0]):
        hall.guest[o] = hall.following[o] = hall.last[o] = -1
    for s in range(m):
        hall.state[s], hall.valid[s], hall.cursor[s] = UNMADE, False, uses.start[s]
        hall.gap[s] = hall.reload[s] = hall.object[s] = -1
        if resident[s] and home[s] >= 0:
            _settle(hall, s, home[s], uses.slot[uses.start[s]])
    for c in range(pool.first.shape[0] - 1):
        hall.head[c] = hall.vacant[c] = 0
        for o in range(pool.first[c], pool.first[c + 1]):
            if hall.guest[o] < 0:
                _free(pool, hall, c, o)
    for s in range(m):
        if resident[s] and home[s] < 0:
            o = _take(pool, hall, pool.class_of[s], True, -1)
            if o < 0:
                resident[s] = False
            else:
                _settle(hall, s, o, uses.slot[uses.start[s]])
        if flow.held[s] and uses.start[s] < uses.start[s + 1]:
            if not resident[s]:
                hall.state[s] = AWAY
            hall.valid[s] = not (resident[s] and flow.updated[s])


@inlined_kernel
def _settle(hall: Hall, s: int, o: int, following: int) -> None:
    """Let a storage have an object."""
    hall.state[s], hall.object[s], hall.guest[o], hall.following[o] = HERE, o, s, following


@kernel
def _free(pool: Pool, hall: Hall, c: int, o: int) -> None:
    """Put an object among the free ones of its class."""
    low, size = pool.first[c], pool.first[c + 1] - pool.first[c]
    hall.guest[o] = hall.following[o] = -1
    hall.free[low + (hall.head[c] + hall.vacant[c]) % size] = o
    hall.vacant[c] += 1


@kernel
def _take(pool: Pool, hall: Hall, c: int, newest: bool, wanted: int) -> int:
    """Take a free object of a class: the one wanted, or the one free for the shortest or longest time; -1 for none.

    What is copied in takes the longest free, so that the copy may begin early; what an op makes needs no such time.
    """
    if hall.vacant[c] == 0:
        return -1
    low, size = pool.first[c], pool.first[c + 1] - pool.first[c]
    at = hall.vacant[c] - 1 if newest else 0
    if wanted >= 0 and hall.guest[wanted] < 0:
        at = 0
        while hall.free[low + (hall.head[c] + at) % size] != wanted:
            at += 1
    o = hall.free[low + (hall.head[c] + at) % size]
    if at == 0:
        hall.head[c] = (hall.head[c] + 1) % size
    else:
        for j in range(at, hall.vacant[c] - 1):
            hall.free[low + (hall.head[c] + j) % size] = hall.free[low + (hall.head[c] + j + 1) % size]
    hall.vacant[c] -= 1
    return int(o)


@kernel
def _victim(clock: Seconds, pool: Pool, threshold: Seconds, hall: Hall, c: int, i: int) -> int:
    """The object whose guest is used furthest in the future, of those last used long enough ago, else of all; or -1.

    What the op in slot `i` itself needs is used in that slot and cannot be chosen.
    """
    best, furthest, other, further = -1, i, -1, i
    for o in range(pool.first[c], pool.first[c + 1]):
        following = hall.following[o]
        if following > furthest:
            last = hall.last[o]
            if last < 0 or clock[i] - clock[last + 1] >= threshold[hall.guest[o]]:
                best, furthest = o, following
            elif following > further:
                other, further = o, following
    return best if best >= 0 else other


@kernel
def _leave(uses: Uses, resident: Flags, gaps: Gaps, moves: Moves, hall: Hall, s: int, i: int, k: int) -> int:
    """Let a storage leave for slot `i` by gap `k`; returns -1 where it need not have been there since the start."""
    hall.state[s] = AWAY
    if hall.cursor[s] == uses.start[s]:
        resident[s], hall.valid[s] = False, True
        return -1
    o = hall.object[s]
    gaps.storage[k], gaps.ready[k], gaps.copy[k] = s, hall.last[o], not hall.valid[s]
    gaps.use[k] = uses.slot[hall.cursor[s]] if hall.cursor[s] < uses.start[s + 1] else NEVER
    moves.place[k], moves.due[k] = o, i
    hall.valid[s], hall.gap[s] = True, k
    return k
