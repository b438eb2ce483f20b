"""Tightening residencies to when the copies run, which makes room for packing and changes no times."""

from __future__ import annotations

import numpy as np

from planner.jit import kernel
from planner.swap.draft.absences import Absences
from planner.swap.problem.problem import Ints, Seconds
from planner.swap.problem.uses import Uses


@kernel
def tighten_residencies(
    uses: Uses,
    absences: Absences,
    reuses_buffer_of: Ints,
    outs: Ints,
    ins: Ints,
    compute: Seconds,
    out_spans: Seconds,
    in_spans: Seconds,
) -> None:
    """Release memory as soon as the copy out is done, and reserve it only when the copy in begins.

    Whatever a queue entry newly waits for is done by the time the entry begins, so no times change.

    Args:
        uses: when each storage is touched.
        absences: when storages are off the device; their releases and reloads are changed.
        reuses_buffer_of: `[slots]`, the storage whose buffer the op in the slot reuses, or -1.
        outs, ins: the absences in the order of the two queues.
        compute, out_spans, in_spans: start and stop of every entry in seconds, in queue order.
    """
    n = compute.shape[0]
    freed_at = np.zeros(n + 1)  # when all swap-outs that this slot waits for are done
    for j in range(outs.shape[0]):
        release = absences.release[outs[j]]
        freed_at[release] = max(freed_at[release], out_spans[j, 1])
    for i in range(n):
        freed_at[i + 1] = max(freed_at[i + 1], freed_at[i])
    reserved_at = np.full(n + 1, np.inf)  # when the first swap-in whose memory is reserved from this slot begins
    for j in range(ins.shape[0]):
        k, begins = ins[j], in_spans[j, 0]
        q, latest = absences.reload[k], absences.use[k]
        if latest == n or reuses_buffer_of[latest] == absences.storage[k]:
            latest -= 1  # a residency is never empty
        while q < latest and compute[q, 1] <= begins and freed_at[q + 1] <= begins:
            q += 1
        absences.reload[k] = q
        reserved_at[q] = min(reserved_at[q], begins)
    copied_out_at = np.zeros(absences.storage.shape[0])
    for j in range(outs.shape[0]):
        copied_out_at[outs[j]] = out_spans[j, 1]
    for k in range(absences.storage.shape[0]):
        if absences.release[k] < 0:
            continue
        s, release = absences.storage[k], absences.release[k]
        low, high = uses.start[s], uses.start[s + 1]
        while low < high:
            middle = (low + high) // 2
            if uses.slot[middle] < release:
                low = middle + 1
            else:
                high = middle
        slot = uses.slot[low - 1] + 1 if low > uses.start[s] else 1
        while slot < release and (compute[slot, 0] < copied_out_at[k] or reserved_at[slot] < copied_out_at[k]):
            slot += 1
        absences.release[k] = min(slot, release)
