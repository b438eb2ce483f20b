"""Shortening residencies to when the copies really run, which makes room for packing and moves nothing in time."""

from __future__ import annotations

import numpy as np

from planner.kernels import kernel
from planner.swap.draft.absences import Gaps
from planner.swap.problem.problem import Ints, Seconds
from planner.swap.problem.uses import Uses


@kernel
def trim(
    uses: Uses,
    gaps: Gaps,
    inherits: Ints,
    outs: Ints,
    ins: Ints,
    compute: Seconds,
    out_spans: Seconds,
    in_spans: Seconds,
) -> None:
    """Release memory as soon as the copy out is done, and reserve it only when the copy in begins.

    No entry of a queue waits for anything new that is not done by the time it begins, so the times stay as they are.

    Args:
        uses: when each storage is touched.
        gaps: who is away when; its releases and reloads are changed.
        inherits: `[slots]`, the storage whose memory the op in the slot takes over, or -1.
        outs, ins: the gaps in the order of the two queues.
        compute, out_spans, in_spans: start and stop of everything, in queue order.
    """
    n = compute.shape[0]
    freed = np.zeros(n + 1)  # when all swap-outs that this slot waits for are done
    for j in range(outs.shape[0]):
        release = gaps.release[outs[j]]
        freed[release] = max(freed[release], out_spans[j, 1])
    for i in range(n):
        freed[i + 1] = max(freed[i + 1], freed[i])
    begun = np.full(n + 1, np.inf)  # when the first swap-in whose memory is reserved from this slot begins
    for j in range(ins.shape[0]):
        k, begins = ins[j], in_spans[j, 0]
        q, latest = gaps.reload[k], gaps.use[k]
        if latest == n or inherits[latest] == gaps.storage[k]:
            latest -= 1  # there is no stay that begins where it ends
        while q < latest and compute[q, 1] <= begins and freed[q + 1] <= begins:
            q += 1
        gaps.reload[k] = q
        begun[q] = min(begun[q], begins)
    done = np.zeros(gaps.storage.shape[0])
    for j in range(outs.shape[0]):
        done[outs[j]] = out_spans[j, 1]
    for k in range(gaps.storage.shape[0]):
        if gaps.release[k] < 0:
            continue
        s, release = gaps.storage[k], gaps.release[k]
        low, high = uses.start[s], uses.start[s + 1]
        while low < high:
            middle = (low + high) // 2
            if uses.slot[middle] < release:
                low = middle + 1
            else:
                high = middle
        f = uses.slot[low - 1] + 1 if low > uses.start[s] else 1
        while f < release and (compute[f, 0] < done[k] or begun[f] < done[k]):
            f += 1
        gaps.release[k] = min(f, release)
