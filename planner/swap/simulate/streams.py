"""Predicts how long a plan takes: three streams that work through their queues, with a link that both directions share.

The waiting rules are those of `planner.plan.schema`. A copy is `latency + bytes / bandwidth` seconds of work for
its direction; while both are busy, each does only `duplex_bandwidth / (2 * bandwidth)` seconds of work per second.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.graph import Graph
from planner.jit import kernel
from planner.machine import Machine
from planner.plan import PlanIndex, SwapPlan, Timeline
from planner.swap.problem.problem import Ints, Seconds, durations, link_model
from planner.swap.simulate.four_lanes import run_four_lanes

_NEVER = np.inf


@kernel
def run_queues(
    seconds: Seconds,
    out_ready: Ints,
    out_release: Ints,
    out_work: Seconds,
    in_start: Ints,
    in_use: Ints,
    in_work: Seconds,
    shared: float,
    waits: Ints,
    compute: Seconds,
    outs: Seconds,
    ins: Seconds,
) -> float:
    """Simulate the three queues; allocates nothing.

    Args:
        seconds: `[slots]`, how long the op in each slot runs.
        out_ready, out_release, out_work: `[swap-outs]`, in queue order; the work is in seconds.
        in_start, in_use, in_work: `[swap-ins]`, likewise.
        shared: work per second in each direction while both are busy.
        waits: `[2, slots + 1]`, scratch.
        compute, outs, ins: `[slots, 2]`, `[swap-outs, 2]`, `[swap-ins, 2]`, filled with start and stop in seconds.

    Returns:
        Seconds until all queues are empty; negative on a deadlock.
    """
    n, out_count, in_count = seconds.shape[0], out_ready.shape[0], in_start.shape[0]
    # how many entries of each copy queue must be done before slot i: queues work in order, so a count is enough
    waits[:] = 0
    for j in range(out_count):
        waits[0, out_release[j]] = j + 1
    for j in range(in_count):
        waits[1, in_use[j]] = j + 1
    for i in range(n):
        waits[0, i + 1] = max(waits[0, i + 1], waits[0, i])
        waits[1, i + 1] = max(waits[1, i + 1], waits[1, i])
    now, rate = 0.0, 1.0
    i = next_out = next_in = 0
    op_end = out_end = in_end = _NEVER
    while True:
        if op_end == _NEVER and i < n and next_out >= waits[0, i] and next_in >= waits[1, i]:
            compute[i, 0] = now
            op_end = now + seconds[i]
        out_starts = out_end == _NEVER and next_out < out_count and i > out_ready[next_out]
        in_starts = (
            in_end == _NEVER
            and next_in < in_count
            and i >= in_start[next_in]
            and next_out >= waits[0, in_start[next_in]]
        )
        if out_starts:
            outs[next_out, 0] = now
            out_end = now + out_work[next_out]
        if in_starts:
            ins[next_in, 0] = now
            in_end = now + in_work[next_in]
        if (out_starts or in_starts) and max(out_end, in_end) != _NEVER:
            rate = shared
            out_end, in_end = now + (out_end - now) / shared, now + (in_end - now) / shared
        next_time = min(op_end, out_end, in_end)
        if next_time == _NEVER:
            return now if i == n and next_out == out_count and next_in == in_count else -1.0
        now = next_time
        if op_end <= now:
            compute[i, 1] = now
            op_end = _NEVER
            i += 1
        if out_end <= now:
            outs[next_out, 1] = now
            out_end = _NEVER
            next_out += 1
        if in_end <= now:
            ins[next_in, 1] = now
            in_end = _NEVER
            next_in += 1
        if rate != 1.0 and max(out_end, in_end) == _NEVER:
            if out_end != _NEVER:
                out_end = now + (out_end - now) * rate
            if in_end != _NEVER:
                in_end = now + (in_end - now) * rate
            rate = 1.0


def simulate(plan: SwapPlan, graph: Graph, machine: Machine, seconds: Seconds) -> Timeline:
    """Predict when everything in a plan happens.

    Args:
        plan, graph: a plan and its graph.
        machine: the machine whose link carries the copies.
        seconds: `[ops]`, how long each op runs.

    Raises:
        StowageError: the op times or the figures of the host link are impossible.
        ValueError: the queues of the plan wait for each other.
    """
    link = link_model(machine)
    order = np.array(plan.order, np.int32)
    n = len(order)

    def column(values: list[int]) -> Ints:
        return np.array(values, np.int32)

    def work(storages: list[int]) -> Seconds:
        sizes = np.array([graph.storages[storage].bytes for storage in storages], np.float64)
        return sizes / link.bandwidth + link.latency

    index, durations_by_slot = PlanIndex(graph, plan), durations(graph, seconds)[order]
    if plan.communications:
        total, compute, outs, ins, beside = run_four_lanes(
            index,
            durations_by_slot,
            work([copy.storage for copy in plan.swap_outs]),
            work([copy.storage for copy in plan.swap_ins]),
            link.shared,
        )
        return _timeline(index, total, compute, outs, ins, beside)
    compute, outs, ins = np.zeros((n, 2)), np.zeros((len(plan.swap_outs), 2)), np.zeros((len(plan.swap_ins), 2))
    total = run_queues(
        durations_by_slot,
        column([copy.ready for copy in plan.swap_outs]),
        column([copy.release for copy in plan.swap_outs]),
        work([copy.storage for copy in plan.swap_outs]),
        column([copy.start for copy in plan.swap_ins]),
        column([copy.use for copy in plan.swap_ins]),
        work([copy.storage for copy in plan.swap_ins]),
        link.shared,
        np.empty((2, n + 1), np.int32),
        compute,
        outs,
        ins,
    )
    return _timeline(index, total, compute, outs, ins)


def _timeline(
    index: PlanIndex, total: float, compute: Seconds, outs: Seconds, ins: Seconds, beside: Seconds | None = None
) -> Timeline:
    if total < 0:
        raise ValueError("the queues of this plan wait for each other")
    return Timeline.of_device(total, compute, outs, ins, np.append(compute[:, 0], total), _bytes_by_slot(index), beside)


def _bytes_by_slot(index: PlanIndex) -> NDArray[np.int64]:
    """`[slots + 1]`, bytes in use in every slot, and after the end of the step."""
    graph = index.graph
    change = np.zeros(index.slots + 1, np.int64)
    np.add.at(change, index.start, index.bytes)
    resident = set(index.storage[(index.start == 0) & (index.copy_in < 0)].tolist())
    remains = [
        (graph.storages[storage].persistent and storage in resident) or storage in graph.output_storages
        for storage in index.storage.tolist()
    ]
    leaves = index.ends | ~np.array(remains, np.bool_)
    np.add.at(change, index.stop[leaves], -index.bytes[leaves])
    return np.cumsum(change)
