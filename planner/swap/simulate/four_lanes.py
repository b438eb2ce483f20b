"""The simulation of `streams` with a communication lane beside the other three, for the plans of workers.

Not a kernel: a search simulates its drafts with collectives as ops of the compute lane, and only plans have the lane.
"""

from __future__ import annotations

from itertools import accumulate
from math import inf

import numpy as np

from planner.plan import PlanIndex
from planner.swap.problem.problem import Seconds

_COMPUTE, _OUT, _IN, _BESIDE = range(4)


def run_four_lanes(
    index: PlanIndex, seconds: Seconds, out_work: Seconds, in_work: Seconds, shared: float
) -> tuple[float, Seconds, Seconds, Seconds, Seconds]:
    """Simulate the queues of a plan by the waiting rules of `planner.plan.schema`.

    Args:
        index: of the plan.
        seconds: `[slots]`, how long the op in each slot runs, on whichever lane.
        out_work, in_work: seconds each copy takes alone, in queue order.
        shared: work per second in each direction while both are busy.

    Returns:
        Seconds until all queues are empty, negative on a deadlock, and start and stop of what is in the lanes for
        compute, swap-outs, swap-ins and communication.
    """
    plan, n = index.plan, index.slots
    due = [0] * (n + 1)  # how many collectives must be done before the op in a slot
    for entry, collective in enumerate(plan.communications):
        due[collective.use] = entry + 1
    due = list(accumulate(due, max))
    handed_over = {collective.start for collective in plan.communications}
    work = [
        [0.0 if slot in handed_over else float(time) for slot, time in enumerate(seconds)], out_work.tolist(),
        in_work.tolist(), [float(seconds[collective.start]) for collective in plan.communications],
    ]  # fmt: skip
    spans = [np.zeros((len(lane), 2)) for lane in work]
    done, left, now = [0, 0, 0, 0], [inf] * 4, 0.0

    def ready(lane: int) -> bool:
        entry = done[lane]
        if entry == len(work[lane]):
            return False
        if lane == _COMPUTE:
            return (
                done[_OUT] >= index.outs_due[entry]
                and done[_IN] >= index.ins_due[entry]
                and done[_BESIDE] >= due[entry]
            )
        if lane == _OUT:
            return done[_COMPUTE] > plan.swap_outs[entry].ready
        if lane == _IN:
            start = plan.swap_ins[entry].start
            return done[_COMPUTE] >= start and done[_OUT] >= index.outs_due[start] and done[_BESIDE] >= due[start]
        return done[_COMPUTE] > plan.communications[entry].start

    while True:
        for lane in range(4):
            if left[lane] == inf and ready(lane):
                spans[lane][done[lane], 0] = now
                left[lane] = work[lane][done[lane]]
        rate = shared if max(left[_OUT], left[_IN]) < inf else 1.0
        rates = (1.0, rate, rate, 1.0)
        step = min(each / pace for each, pace in zip(left, rates, strict=True))
        if step == inf:
            finished = all(count == len(lane) for count, lane in zip(done, work, strict=True))
            compute, outs, ins, beside = spans
            return now if finished else -1.0, compute, outs, ins, beside
        ends = [each / pace <= step for each, pace in zip(left, rates, strict=True)]
        now += step
        for lane in range(4):
            left[lane] = inf if ends[lane] else left[lane] - step * rates[lane]
            if ends[lane]:
                spans[lane][done[lane], 1] = now
                done[lane] += 1
