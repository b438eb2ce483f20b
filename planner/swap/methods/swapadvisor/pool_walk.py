"""The paper's swap planner: one pass over the slots decides which storage in the pool each newcomer replaces.

SwapAdvisor (ASPLOS 2020) section 4.2: a newcomer takes a free object of its size class; if there is none, the resident
of that class with the furthest next use is evicted, among those whose last use is long enough ago.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.jit import inlined_kernel, kernel
from planner.swap.draft.absences import NEVER, Absences
from planner.swap.methods.swapadvisor.pool import ClassPool
from planner.swap.problem.problem import Flags, Ints, ProblemArrays, Seconds
from planner.swap.problem.uses import Uses

#: Where a storage is.
UNMADE, HERE, AWAY, DONE = 0, 1, 2, 3


class PoolMoves(NamedTuple):
    """What a pass decides for each absence, besides `Absences`.

    `place[k]` is the object that absence `k` leaves (-1: none), needed by another storage in slot `due[k]`. The object
    that its storage comes back to is free once the copy out of absence `follows[k]` is done, or, if that is -1, from
    slot `since[k]`.
    """

    place: Ints
    due: Ints
    follows: Ints
    since: Ints


class PoolState(NamedTuple):
    """Scratch of one pass.

    Per storage: where it is (`state`), whether its host copy is `valid`, its next use (`cursor`, into the uses), its
    latest `absence`, the slot of its latest `reload`, and its `object`. Per object: the storage in it (`guest`, -1:
    none), the slot of the guest's `following` use, the slot in which it was `last` used, or -1; and, in a ring per
    class from `head` on, the `vacant` objects that are `free`, longest free first.
    """

    state: Ints
    valid: Flags
    cursor: Ints
    absence: Ints
    reload: Ints
    object: Ints
    guest: Ints
    following: Ints
    last: Ints
    free: Ints
    head: Ints
    vacant: Ints


def blank_pool_state(storages: int) -> PoolState:
    """Scratch for passes over so many storages; no class has more objects than storages."""
    room = storages + 1
    state, cursor, absence, reload, objects, guest, following, last, free, head, vacant = (
        np.empty(room, np.int32) for _ in range(11)
    )
    valid = np.empty(room, np.bool_)
    return PoolState(state, valid, cursor, absence, reload, objects, guest, following, last, free, head, vacant)


def blank_pool_moves(count: int) -> PoolMoves:
    """Room for so many absences."""
    return PoolMoves(*(np.empty(count, np.int32) for _ in range(4)))


@kernel
def evict_by_class(
    order: Ints,
    flow: ProblemArrays,
    uses: Uses,
    clock: Seconds,
    pool: ClassPool,
    threshold: Seconds,
    resident: Flags,
    home: Ints,
    absences: Absences,
    moves: PoolMoves,
    reuses_buffer_of: Ints,
    pool_state: PoolState,
) -> tuple[int, int]:
    """Run one eviction pass over the slots; allocates nothing.

    Args:
        order, flow, uses: the op in each slot, what it touches, and when each storage is touched.
        clock: `[slots + 1]`, when each slot would begin if no op ever waited.
        pool: where the objects are.
        threshold: `[storages]`, seconds ago that a storage must have been used last to be chosen before others.
        resident: `[storages]`, live-in storages on the device when the step starts; cleared for one that leaves before
            its first use.
        home: `[storages]`, the object of each resident when the step starts, or -1 for any.
        absences, moves: filled, except `absences.release` and `absences.reload`, which depend on times.
        reuses_buffer_of: `[slots]`, filled with the storage whose object the op in the slot reuses, or -1.
        pool_state: scratch; its `state` and `object` say where each storage is at the end.

    Returns:
        The number of absences and -1, or, if the op in slot `i` does not fit the pool, 0 and `i`.
    """
    n, m = order.shape[0], flow.bytes.shape[0]
    state, guest = pool_state.state, pool_state.guest
    _open(flow, uses, pool, resident, home, pool_state)
    count = 0
    for i in range(n):
        op = order[i]
        start, stop = flow.touches.start[op], flow.touches.start[op + 1]
        for k in range(start, stop):
            s = flow.touches.items[k]
            if state[s] != AWAY:
                continue
            if pool_state.absence[s] < 0:
                absences.storage[count], absences.ready[count], absences.use[count] = s, -1, i
                absences.copy[count], moves.place[count], moves.due[count] = False, -1, -1
                pool_state.absence[s] = count
                count += 1
            back = pool_state.absence[s]
            o = _take(pool, pool_state, pool.class_of[s], False, home[s] if resident[s] else -1)
            moves.follows[back], moves.since[back] = -1, 0
            if o < 0:
                o = _victim(clock, pool, threshold, pool_state, pool.class_of[s], i)
                if o < 0:
                    return 0, i
                left = _leave(uses, resident, absences, moves, pool_state, guest[o], i, count)
                if left == count:
                    count += 1
                    moves.follows[back] = left
            if moves.follows[back] < 0 or not absences.copy[moves.follows[back]]:
                moves.follows[back], moves.since[back] = -1, pool_state.last[o] + 1
            _settle(pool_state, s, o, i)
            pool_state.reload[s] = i
        reuses_buffer_of[i] = -1
        reused_buffer = uses.reused_buffer[i]
        for k in range(start, stop):
            s = flow.touches.items[k]
            if state[s] != UNMADE:
                continue
            if reused_buffer >= 0 and s == flow.creates[op] and pool_state.reload[reused_buffer] < i:
                reuses_buffer_of[i], state[reused_buffer] = reused_buffer, DONE
                _settle(pool_state, s, pool_state.object[reused_buffer], i)
                continue
            o = _take(pool, pool_state, pool.class_of[s], True, -1)
            if o < 0:
                o = _victim(clock, pool, threshold, pool_state, pool.class_of[s], i)
                if o < 0:
                    return 0, i
                if _leave(uses, resident, absences, moves, pool_state, guest[o], i, count) == count:
                    count += 1
            _settle(pool_state, s, o, i)
        for k in range(start, stop):
            s = flow.touches.items[k]
            if state[s] != HERE:
                continue
            c, o = pool_state.cursor[s], pool_state.object[s]
            if uses.writes[c]:
                pool_state.valid[s] = False
            pool_state.cursor[s] = c + 1
            pool_state.last[o] = i
            if c + 1 < uses.start[s + 1]:
                pool_state.following[o] = uses.slot[c + 1]
            elif flow.persistent[s]:
                pool_state.following[o] = n + uses.slot[uses.start[s]]
            elif flow.live_out[s]:
                pool_state.following[o] = 2 * n
            else:
                state[s] = DONE
                _free(pool, pool_state, pool.class_of[s], o)
    for s in range(m):
        if (
            flow.persistent[s] and state[s] == HERE and not resident[s]
        ):  # it began the step on the host, so it ends there
            _leave(uses, resident, absences, moves, pool_state, s, n, count)
            state[s] = HERE
            count += 1
    return count, -1


@kernel
def _open(flow: ProblemArrays, uses: Uses, pool: ClassPool, resident: Flags, home: Ints, pool_state: PoolState) -> None:
    """Put every storage where it is when the step starts; one without a home or a free object is not resident."""
    m = flow.bytes.shape[0]
    for o in range(pool.offset.shape[0]):
        pool_state.guest[o] = pool_state.following[o] = pool_state.last[o] = -1
    for s in range(m):
        pool_state.state[s], pool_state.valid[s], pool_state.cursor[s] = UNMADE, False, uses.start[s]
        pool_state.absence[s] = pool_state.reload[s] = pool_state.object[s] = -1
        if resident[s] and home[s] >= 0:
            _settle(pool_state, s, home[s], uses.slot[uses.start[s]])
    for c in range(pool.first.shape[0] - 1):
        pool_state.head[c] = pool_state.vacant[c] = 0
        for o in range(pool.first[c], pool.first[c + 1]):
            if pool_state.guest[o] < 0:
                _free(pool, pool_state, c, o)
    for s in range(m):
        if resident[s] and home[s] < 0:
            o = _take(pool, pool_state, pool.class_of[s], True, -1)
            if o < 0:
                resident[s] = False
            else:
                _settle(pool_state, s, o, uses.slot[uses.start[s]])
        if flow.live_in[s] and uses.start[s] < uses.start[s + 1]:
            if not resident[s]:
                pool_state.state[s] = AWAY
            pool_state.valid[s] = not (resident[s] and flow.updated[s])


@inlined_kernel
def _settle(pool_state: PoolState, s: int, o: int, following: int) -> None:
    """Assign an object to a storage."""
    pool_state.state[s], pool_state.object[s], pool_state.guest[o], pool_state.following[o] = HERE, o, s, following


@kernel
def _free(pool: ClassPool, pool_state: PoolState, c: int, o: int) -> None:
    """Add an object to the free ones of its class."""
    low, size = pool.first[c], pool.first[c + 1] - pool.first[c]
    pool_state.guest[o] = pool_state.following[o] = -1
    pool_state.free[low + (pool_state.head[c] + pool_state.vacant[c]) % size] = o
    pool_state.vacant[c] += 1


@kernel
def _take(pool: ClassPool, pool_state: PoolState, c: int, newest: bool, wanted: int) -> int:
    """Take a free object of a class: the one wanted, or the one free for the shortest or longest time; -1 for none.

    A storage that is copied in takes the longest free, so that the copy may begin early; a new one needs no such time.
    """
    if pool_state.vacant[c] == 0:
        return -1
    low, size = pool.first[c], pool.first[c + 1] - pool.first[c]
    at = pool_state.vacant[c] - 1 if newest else 0
    if wanted >= 0 and pool_state.guest[wanted] < 0:
        at = 0
        while pool_state.free[low + (pool_state.head[c] + at) % size] != wanted:
            at += 1
    o = pool_state.free[low + (pool_state.head[c] + at) % size]
    if at == 0:
        pool_state.head[c] = (pool_state.head[c] + 1) % size
    else:
        for j in range(at, pool_state.vacant[c] - 1):
            pool_state.free[low + (pool_state.head[c] + j) % size] = pool_state.free[
                low + (pool_state.head[c] + j + 1) % size
            ]
    pool_state.vacant[c] -= 1
    return int(o)


@kernel
def _victim(clock: Seconds, pool: ClassPool, threshold: Seconds, pool_state: PoolState, c: int, i: int) -> int:
    """The object whose guest has the furthest next use, of those last used long enough ago, else of all; or -1.

    Storages that the op in slot `i` itself needs are used in that slot and cannot be chosen.
    """
    best, furthest, other, further = -1, i, -1, i
    for o in range(pool.first[c], pool.first[c + 1]):
        following = pool_state.following[o]
        if following > furthest:
            last = pool_state.last[o]
            if last < 0 or clock[i] - clock[last + 1] >= threshold[pool_state.guest[o]]:
                best, furthest = o, following
            elif following > further:
                other, further = o, following
    return best if best >= 0 else other


@kernel
def _leave(
    uses: Uses, resident: Flags, absences: Absences, moves: PoolMoves, pool_state: PoolState, s: int, i: int, k: int
) -> int:
    """Evict a storage for slot `i` as absence `k`; returns -1 if it need not have been there since the start."""
    pool_state.state[s] = AWAY
    if pool_state.cursor[s] == uses.start[s]:
        resident[s], pool_state.valid[s] = False, True
        return -1
    o = pool_state.object[s]
    absences.storage[k], absences.ready[k], absences.copy[k] = s, pool_state.last[o], not pool_state.valid[s]
    absences.use[k] = uses.slot[pool_state.cursor[s]] if pool_state.cursor[s] < uses.start[s + 1] else NEVER
    moves.place[k], moves.due[k] = o, i
    pool_state.valid[s], pool_state.absence[s] = True, k
    return k
