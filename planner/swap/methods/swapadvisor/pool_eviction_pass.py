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
NOT_CREATED, ON_DEVICE, ON_HOST, DEAD = 0, 1, 2, 3


class PoolMoves(NamedTuple):
    """What a pass decides for each absence, besides `Absences`.

    `object[k]` is the object that absence `k` leaves (-1: none), needed by another storage in slot `needed_in[k]`. The
    object that its storage comes back to is free once the copy out of absence `after_copy_out[k]` is done, or, if that
    is -1, from slot `free_since[k]`.
    """

    object: Ints
    needed_in: Ints
    after_copy_out: Ints
    free_since: Ints


class PoolState(NamedTuple):
    """Scratch of one pass.

    Per storage: where it is (`state`), whether its host copy is `valid`, its next use (`cursor`, into the uses), its
    latest `absence`, the slot of its latest `reload`, and its `object`. Per object: the storage in it (`occupant`, -1:
    none), the slot of the occupant's `next_use`, the slot in which it was `last` used, or -1; and, in a ring per
    class from `free_head` on, the `free_count` objects that are `free`, longest free first.
    """

    state: Ints
    valid: Flags
    cursor: Ints
    absence: Ints
    reload: Ints
    object: Ints
    occupant: Ints
    next_use: Ints
    last: Ints
    free: Ints
    free_head: Ints
    free_count: Ints


def blank_pool_state(storages: int) -> PoolState:
    """Scratch for passes over so many storages; no class has more objects than storages."""
    capacity = storages + 1
    state, cursor, absence, reload, objects, occupant, next_use, last, free, free_head, free_count = (
        np.empty(capacity, np.int32) for _ in range(11)
    )
    valid = np.empty(capacity, np.bool_)
    return PoolState(
        state, valid, cursor, absence, reload, objects, occupant, next_use, last, free, free_head, free_count
    )


def blank_pool_moves(count: int) -> PoolMoves:
    """Room for so many absences."""
    return PoolMoves(*(np.empty(count, np.int32) for _ in range(4)))


@kernel
def evict_by_class(
    order: Ints,
    arrays: ProblemArrays,
    uses: Uses,
    clock: Seconds,
    pool: ClassPool,
    threshold: Seconds,
    resident: Flags,
    initial_objects: Ints,
    absences: Absences,
    moves: PoolMoves,
    reuses_buffer_of: Ints,
    pool_state: PoolState,
) -> tuple[int, int]:
    """Run one eviction pass over the slots; allocates nothing.

    Args:
        order, arrays, uses: the op in each slot, what it touches, and when each storage is touched.
        clock: `[slots + 1]`, when each slot would begin if no op ever waited.
        pool: where the objects are.
        threshold: `[storages]`, seconds ago that a storage must have been used last to be chosen before others.
        resident: `[storages]`, live-in storages on the device when the step starts; cleared for one that leaves before
            its first use.
        initial_objects: `[storages]`, the object of each resident when the step starts, or -1 for any.
        absences, moves: filled, except `absences.release` and `absences.reload`, which depend on times.
        reuses_buffer_of: `[slots]`, filled with the storage whose object the op in the slot reuses, or -1.
        pool_state: scratch; its `state` and `object` say where each storage is at the end.

    Returns:
        The number of absences and -1, or, if the op in slot `i` does not fit the pool, 0 and `i`.
    """
    n, m = order.shape[0], arrays.bytes.shape[0]
    state, occupant = pool_state.state, pool_state.occupant
    _start_step(arrays, uses, pool, resident, initial_objects, pool_state)
    count = 0
    for i in range(n):
        op = order[i]
        start, stop = arrays.touches.start[op], arrays.touches.start[op + 1]
        for k in range(start, stop):
            s = arrays.touches.items[k]
            if state[s] != ON_HOST:
                continue
            if pool_state.absence[s] < 0:
                absences.storage[count], absences.ready[count], absences.use[count] = s, -1, i
                absences.copy[count], moves.object[count], moves.needed_in[count] = False, -1, -1
                pool_state.absence[s] = count
                count += 1
            returning = pool_state.absence[s]
            o = _take(pool, pool_state, pool.class_of[s], False, initial_objects[s] if resident[s] else -1)
            moves.after_copy_out[returning], moves.free_since[returning] = -1, 0
            if o < 0:
                o = _victim(clock, pool, threshold, pool_state, pool.class_of[s], i)
                if o < 0:
                    return 0, i
                evicted = _evict(uses, resident, absences, moves, pool_state, occupant[o], i, count)
                if evicted == count:
                    count += 1
                    moves.after_copy_out[returning] = evicted
            if moves.after_copy_out[returning] < 0 or not absences.copy[moves.after_copy_out[returning]]:
                moves.after_copy_out[returning], moves.free_since[returning] = -1, pool_state.last[o] + 1
            _assign(pool_state, s, o, i)
            pool_state.reload[s] = i
        reuses_buffer_of[i] = -1
        reused_buffer = uses.reused_buffer[i]
        for k in range(start, stop):
            s = arrays.touches.items[k]
            if state[s] != NOT_CREATED:
                continue
            if reused_buffer >= 0 and s == arrays.creates[op] and pool_state.reload[reused_buffer] < i:
                reuses_buffer_of[i], state[reused_buffer] = reused_buffer, DEAD
                _assign(pool_state, s, pool_state.object[reused_buffer], i)
                continue
            o = _take(pool, pool_state, pool.class_of[s], True, -1)
            if o < 0:
                o = _victim(clock, pool, threshold, pool_state, pool.class_of[s], i)
                if o < 0:
                    return 0, i
                if _evict(uses, resident, absences, moves, pool_state, occupant[o], i, count) == count:
                    count += 1
            _assign(pool_state, s, o, i)
        for k in range(start, stop):
            s = arrays.touches.items[k]
            if state[s] != ON_DEVICE:
                continue
            c, o = pool_state.cursor[s], pool_state.object[s]
            if uses.writes[c]:
                pool_state.valid[s] = False
            pool_state.cursor[s] = c + 1
            pool_state.last[o] = i
            if c + 1 < uses.start[s + 1]:
                pool_state.next_use[o] = uses.slot[c + 1]
            elif arrays.persistent[s]:
                pool_state.next_use[o] = n + uses.slot[uses.start[s]]
            elif arrays.live_out[s]:
                pool_state.next_use[o] = 2 * n
            else:
                state[s] = DEAD
                _free(pool, pool_state, pool.class_of[s], o)
    for s in range(m):
        if (
            arrays.persistent[s] and state[s] == ON_DEVICE and not resident[s]
        ):  # it began the step on the host, so it ends there
            _evict(uses, resident, absences, moves, pool_state, s, n, count)
            state[s] = ON_DEVICE
            count += 1
    return count, -1


@kernel
def _start_step(
    arrays: ProblemArrays, uses: Uses, pool: ClassPool, resident: Flags, initial_objects: Ints, pool_state: PoolState
) -> None:
    """Put every storage where it is when the step starts; one without a home or a free object is not resident."""
    m = arrays.bytes.shape[0]
    for o in range(pool.offset.shape[0]):
        pool_state.occupant[o] = pool_state.next_use[o] = pool_state.last[o] = -1
    for s in range(m):
        pool_state.state[s], pool_state.valid[s], pool_state.cursor[s] = NOT_CREATED, False, uses.start[s]
        pool_state.absence[s] = pool_state.reload[s] = pool_state.object[s] = -1
        if resident[s] and initial_objects[s] >= 0:
            _assign(pool_state, s, initial_objects[s], uses.slot[uses.start[s]])
    for c in range(pool.first.shape[0] - 1):
        pool_state.free_head[c] = pool_state.free_count[c] = 0
        for o in range(pool.first[c], pool.first[c + 1]):
            if pool_state.occupant[o] < 0:
                _free(pool, pool_state, c, o)
    for s in range(m):
        if resident[s] and initial_objects[s] < 0:
            o = _take(pool, pool_state, pool.class_of[s], True, -1)
            if o < 0:
                resident[s] = False
            else:
                _assign(pool_state, s, o, uses.slot[uses.start[s]])
        if arrays.live_in[s] and uses.start[s] < uses.start[s + 1]:
            if not resident[s]:
                pool_state.state[s] = ON_HOST
            pool_state.valid[s] = not (resident[s] and arrays.updated[s])


@inlined_kernel
def _assign(pool_state: PoolState, s: int, o: int, next_use: int) -> None:
    """Assign an object to a storage."""
    pool_state.state[s], pool_state.object[s], pool_state.occupant[o], pool_state.next_use[o] = (
        ON_DEVICE,
        o,
        s,
        next_use,
    )


@kernel
def _free(pool: ClassPool, pool_state: PoolState, c: int, o: int) -> None:
    """Add an object to the free ones of its class."""
    low, size = pool.first[c], pool.first[c + 1] - pool.first[c]
    pool_state.occupant[o] = pool_state.next_use[o] = -1
    pool_state.free[low + (pool_state.free_head[c] + pool_state.free_count[c]) % size] = o
    pool_state.free_count[c] += 1


@kernel
def _take(pool: ClassPool, pool_state: PoolState, c: int, newest: bool, preferred: int) -> int:
    """Take a free object of a class: the one wanted, or the one free for the shortest or longest time; -1 for none.

    A storage that is copied in takes the longest free, so that the copy may begin early; a new one needs no such time.
    """
    if pool_state.free_count[c] == 0:
        return -1
    low, size = pool.first[c], pool.first[c + 1] - pool.first[c]
    position = pool_state.free_count[c] - 1 if newest else 0
    if preferred >= 0 and pool_state.occupant[preferred] < 0:
        position = 0
        while pool_state.free[low + (pool_state.free_head[c] + position) % size] != preferred:
            position += 1
    o = pool_state.free[low + (pool_state.free_head[c] + position) % size]
    if position == 0:
        pool_state.free_head[c] = (pool_state.free_head[c] + 1) % size
    else:
        for j in range(position, pool_state.free_count[c] - 1):
            pool_state.free[low + (pool_state.free_head[c] + j) % size] = pool_state.free[
                low + (pool_state.free_head[c] + j + 1) % size
            ]
    pool_state.free_count[c] -= 1
    return int(o)


@kernel
def _victim(clock: Seconds, pool: ClassPool, threshold: Seconds, pool_state: PoolState, c: int, i: int) -> int:
    """The object whose occupant has the furthest next use, of those last used long enough ago, else of all; or -1.

    Storages that the op in slot `i` itself needs are used in that slot and cannot be chosen.
    """
    best, furthest_use, fallback, fallback_use = -1, i, -1, i
    for o in range(pool.first[c], pool.first[c + 1]):
        next_use = pool_state.next_use[o]
        if next_use > furthest_use:
            last = pool_state.last[o]
            if last < 0 or clock[i] - clock[last + 1] >= threshold[pool_state.occupant[o]]:
                best, furthest_use = o, next_use
            elif next_use > fallback_use:
                fallback, fallback_use = o, next_use
    return best if best >= 0 else fallback


@kernel
def _evict(
    uses: Uses, resident: Flags, absences: Absences, moves: PoolMoves, pool_state: PoolState, s: int, i: int, k: int
) -> int:
    """Evict a storage for slot `i` as absence `k`; returns -1 if it need not have been there since the start."""
    pool_state.state[s] = ON_HOST
    if pool_state.cursor[s] == uses.start[s]:
        resident[s], pool_state.valid[s] = False, True
        return -1
    o = pool_state.object[s]
    absences.storage[k], absences.ready[k], absences.copy[k] = s, pool_state.last[o], not pool_state.valid[s]
    absences.use[k] = uses.slot[pool_state.cursor[s]] if pool_state.cursor[s] < uses.start[s + 1] else NEVER
    moves.object[k], moves.needed_in[k] = o, i
    pool_state.valid[s], pool_state.absence[s] = True, k
    return k
