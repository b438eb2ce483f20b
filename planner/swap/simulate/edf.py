"""Orders the copies of an unplaced plan by earliest deadline first among those that are ready."""

from __future__ import annotations

import numpy as np

from planner.jit import kernel
from planner.swap.draft.absences import NEVER, Absences
from planner.swap.problem.heap import pop, push
from planner.swap.problem.problem import Flags, Ints, Seconds


@kernel
def edf(seconds: Seconds, absences: Absences, work: Seconds, shared: float) -> tuple[Ints, Ints]:
    """Simulate an unplaced plan with copies in order of deadline and record the queues.

    Args:
        seconds: `[slots]`, how long the op in each slot runs.
        absences: when storages are off the device.
        work: `[absences]`, seconds each copy takes alone.
        shared: work per second in each direction while both are busy.

    Returns:
        The absences whose copies make up the swap-out queue, and those of the swap-in queue.
    """
    outs, ins, _ = edf_by(
        seconds,
        absences.ready,
        absences.release,
        absences.reload,
        absences.use,
        absences.copy,
        absences.release,
        absences.use,
        work,
        shared,
    )
    return outs, ins


@kernel
def edf_by(
    seconds: Seconds,
    ready: Ints,
    release: Ints,
    reload: Ints,
    use: Ints,
    copy: Flags,
    out_key: Ints,
    in_key: Ints,
    work: Seconds,
    shared: float,
) -> tuple[Ints, Ints, float]:
    """Like `edf`, but the ready copy with the smallest key goes first.

    Args:
        seconds, work, shared: as for `edf`.
        ready, release, reload, use, copy: the absences, as in `Absences`.
        out_key, in_key: `[absences]`, ranks of copies out and copies in.

    Returns:
        Both queues, and the seconds until they and all ops are done; infinite on a deadlock.
    """
    n, count = seconds.shape[0], release.shape[0]
    out_left, in_left = np.zeros(n + 1, np.int32), np.zeros(n + 1, np.int32)
    out_head, in_head = np.full(n + 2, -1, np.int32), np.full(n + 2, -1, np.int32)
    out_next, in_next = np.empty(count, np.int32), np.empty(count, np.int32)
    outs, ins = np.empty(count, np.int32), np.empty(count, np.int32)
    out_heap, in_heap = np.empty(count, np.int32), np.empty(count, np.int32)
    for k in range(count - 1, -1, -1):
        if copy[k]:
            out_left[release[k]] += 1
            out_next[k], out_head[ready[k] + 1] = out_head[ready[k] + 1], k
        if reload[k] != NEVER:
            in_left[use[k]] += 1
            in_next[k], in_head[reload[k]] = in_head[reload[k]], k
    out_count = in_count = waiting_out = waiting_in = 0
    out_opened = in_opened = -1
    outs_done_before = 0  # every swap-out with a release below this slot is done
    now, rate, i = 0.0, 1.0, 0
    op_end = out_end = in_end = np.inf
    out_now = in_now = -1
    while True:
        while outs_done_before <= n and out_left[outs_done_before] == 0:
            outs_done_before += 1
        while out_opened < i:
            out_opened += 1
            k = out_head[out_opened]
            while k >= 0:
                waiting_out = push(out_heap, waiting_out, out_key, k)
                k = out_next[k]
        while in_opened < min(i, outs_done_before - 1):
            in_opened += 1
            k = in_head[in_opened]
            while k >= 0:
                waiting_in = push(in_heap, waiting_in, in_key, k)
                k = in_next[k]
        if op_end == np.inf and i < n and outs_done_before > i and in_left[i] == 0:
            op_end = now + seconds[i]
        started = False
        if out_now < 0 and waiting_out > 0:
            out_now, waiting_out = pop(out_heap, waiting_out, out_key)
            outs[out_count] = out_now
            out_count += 1
            out_end = now + work[out_now]
            started = True
        if in_now < 0 and waiting_in > 0:
            in_now, waiting_in = pop(in_heap, waiting_in, in_key)
            ins[in_count] = in_now
            in_count += 1
            in_end = now + work[in_now]
            started = True
        if started and out_now >= 0 and in_now >= 0:
            rate = shared
            out_end, in_end = now + (out_end - now) / shared, now + (in_end - now) / shared
        next_time = min(op_end, out_end, in_end)
        if next_time == np.inf:
            stuck = i < n or out_left.any() or in_left.any()
            return outs[:out_count], ins[:in_count], np.inf if stuck else now
        now = next_time
        if op_end <= now:
            op_end = np.inf
            i += 1
        if out_end <= now:
            out_left[release[out_now]] -= 1
            out_now, out_end = -1, np.inf
        if in_end <= now:
            in_left[use[in_now]] -= 1
            in_now, in_end = -1, np.inf
        if rate != 1.0 and (out_now < 0 or in_now < 0):
            if out_now >= 0:
                out_end = now + (out_end - now) * rate
            if in_now >= 0:
                in_end = now + (in_end - now) * rate
            rate = 1.0
