"""When the swaps of a pool eviction pass run: as early as control edges allow (SwapAdvisor, ASPLOS 2020, section 4.2).

Last use of the victim -> copy out -> copy in of the newcomer -> the op that needs it; where an op makes the newcomer,
copy out -> op. A plan has slots instead of edges, so the times by edges are then converted to slots.
"""

from __future__ import annotations

import numpy as np

from planner.jit import kernel
from planner.swap.draft.absences import NEVER, Absences
from planner.swap.methods.swapadvisor.pool_eviction_pass import PoolMoves
from planner.swap.problem.heap import pop, push
from planner.swap.problem.problem import Ints, Seconds


@kernel
def run_edges(
    seconds: Seconds,
    absences: Absences,
    moves: PoolMoves,
    count: int,
    work: Seconds,
    shared: float,
    waiting: Ints,
    ready: Ints,
) -> tuple[Ints, Ints, Seconds, Seconds]:
    """Run ops and swaps by their edges; of the swaps that may begin, the one needed first does.

    Args:
        seconds: `[slots]`, how long the op in each slot runs.
        absences, moves, count: what a pass decided, and how many absences.
        work: `[storages]`, seconds each takes on the link alone.
        shared: work per second in each direction while both are busy.
        waiting, ready: scratch for as many copies out and in as there are absences.

    Returns:
        The absences whose copies make up the swap-out queue, likewise the swap-in queue, `[slots + 1]` when each slot
        begins and the end, and `[absences]` when each copy out is done.
    """
    n = seconds.shape[0]
    out_left, in_left = np.zeros(n + 1, np.int32), np.zeros(n + 1, np.int32)
    # swaps by the slot whose op they wait for, shifted by one: those at 0 wait for nothing
    out_head, in_head = np.full(n + 1, -1, np.int32), np.full(n + 1, -1, np.int32)
    out_next, in_next = np.empty(count, np.int32), np.empty(count, np.int32)
    follower, missing_count = np.full(count, -1, np.int32), np.zeros(count, np.int32)
    outs, ins = np.empty(count, np.int32), np.empty(count, np.int32)
    begin, done = np.zeros(n + 1), np.zeros(count)
    for k in range(count - 1, -1, -1):
        if absences.copy[k]:
            out_left[moves.needed_in[k]] += 1
            out_next[k], out_head[absences.ready[k] + 1] = out_head[absences.ready[k] + 1], k
        if absences.use[k] != NEVER:
            in_left[absences.use[k]] += 1
            slot = max(moves.free_since[k], absences.ready[k] + 1)
            in_next[k], in_head[slot] = in_head[slot], k
            missing_count[k] = 1 + absences.copy[k] + (moves.after_copy_out[k] >= 0)
            if moves.after_copy_out[k] >= 0:
                follower[moves.after_copy_out[k]] = k
    out_count = in_count = waiting_outs = waiting_ins = 0
    now, rate, i, opened = 0.0, 1.0, 0, -1
    op_end = out_end = in_end = np.inf
    out_now = in_now = -1
    while True:
        while opened < i:
            opened += 1
            k = out_head[opened]
            while k >= 0:
                waiting_outs = push(waiting, waiting_outs, moves.needed_in, k)
                k = out_next[k]
            k = in_head[opened]
            while k >= 0:
                missing_count[k] -= 1
                if missing_count[k] == 0:
                    waiting_ins = push(ready, waiting_ins, absences.use, k)
                k = in_next[k]
        if op_end == np.inf and i < n and out_left[i] == 0 and in_left[i] == 0:
            begin[i], op_end = now, now + seconds[i]
        started = False
        if out_now < 0 and waiting_outs > 0:
            out_now, waiting_outs = pop(waiting, waiting_outs, moves.needed_in)
            outs[out_count] = out_now
            out_count += 1
            out_end, started = now + work[absences.storage[out_now]], True
        if in_now < 0 and waiting_ins > 0:
            in_now, waiting_ins = pop(ready, waiting_ins, absences.use)
            ins[in_count] = in_now
            in_count += 1
            in_end, started = now + work[absences.storage[in_now]], True
        if started and out_now >= 0 and in_now >= 0:
            rate = shared
            out_end, in_end = now + (out_end - now) / shared, now + (in_end - now) / shared
        next_time = min(op_end, out_end, in_end)
        if next_time == np.inf:
            begin[n] = now
            return outs[:out_count], ins[:in_count], begin, done
        now = next_time
        if op_end <= now:
            op_end = np.inf
            i += 1
        if out_end <= now:
            done[out_now] = now
            out_left[moves.needed_in[out_now]] -= 1
            for waiting_copy in range(2):  # its own reload, and the newcomer's copy in
                k = follower[out_now] if waiting_copy else out_now
                if k >= 0 and absences.use[k] != NEVER:
                    missing_count[k] -= 1
                    if missing_count[k] == 0:
                        waiting_ins = push(ready, waiting_ins, absences.use, k)
            out_now, out_end = -1, np.inf
        if in_end <= now:
            in_left[absences.use[in_now]] -= 1
            in_now, in_end = -1, np.inf
        if rate != 1.0 and (out_now < 0 or in_now < 0):
            if out_now >= 0:
                out_end = now + (out_end - now) * rate
            if in_now >= 0:
                in_end = now + (in_end - now) * rate
            rate = 1.0


@kernel
def write_slots(absences: Absences, moves: PoolMoves, count: int, begin: Seconds, done: Seconds) -> None:
    """Convert times to the slots in which memory is released and reserved.

    An object is released with the first op that begins after the copy out is done, so no op waits for it that did not
    wait before; its newcomer has it from that slot on. A copy in that began during an op now begins with the next one.

    Args:
        absences: their `release` and `reload` are filled.
        moves, count: as in `run_edges`.
        begin, done: what `run_edges` returned.
    """
    for k in range(count):
        absences.release[k] = absences.ready[k] + 1 if absences.ready[k] >= 0 else -1
        if absences.copy[k]:
            low, high = absences.ready[k] + 1, moves.needed_in[k]
            while low < high:
                middle = (low + high) // 2
                if begin[middle] >= done[k]:
                    high = middle
                else:
                    low = middle + 1
            absences.release[k] = low
    for k in range(count):
        if absences.use[k] == NEVER:
            absences.reload[k] = NEVER
        else:
            freed_slot = absences.release[moves.after_copy_out[k]] if moves.after_copy_out[k] >= 0 else 0
            absences.reload[k] = max(moves.free_since[k], absences.release[k], freed_slot)
