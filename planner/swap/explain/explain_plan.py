"""Explains a plan: what makes up its peak, what its step waits for, what limits it, and each storage's decision."""

from __future__ import annotations

from collections import defaultdict
from math import fsum

import numpy as np

from planner.graph import Graph
from planner.machine import Machine, approximation
from planner.plan import PlanIndex, SwapPlan, WaitShare, compute_waits, own_graph
from planner.progress import Progress, ShowProgress, reporting
from planner.swap.explain.bottleneck import bottleneck_of
from planner.swap.explain.decisions import swap_decisions
from planner.swap.explain.explanation import Explanation, Holding, OpStall, StorageStall
from planner.swap.problem.problem import Seconds, link_model
from planner.swap.simulate.streams import simulate


def explain(
    plan: SwapPlan,
    graph: Graph,
    machine: Machine,
    seconds: Seconds | None = None,
    *,
    progress: ShowProgress = True,
) -> Explanation:
    """Explain what makes up a plan's peak, what its step waits for, what limits it, and why storages left or stayed.

    Args:
        plan, graph: a plan and its graph.
        machine: its host link carries the copies.
        seconds: `[ops]`, how long each op runs; without it, the machine's roofline.
        progress: True shows progress, False shows nothing; a function is called with the share done, 0 to 1, and a
            status text.

    Raises:
        StowageError: the plan is for another graph.
    """
    graph = own_graph(graph, plan)
    if seconds is None:
        from planner.machine import op_seconds

        seconds = op_seconds(graph, machine)
    with reporting(progress) as report:
        return _explained(plan, graph, machine, seconds, report)


def _explained(plan: SwapPlan, graph: Graph, machine: Machine, seconds: Seconds, report: Progress) -> Explanation:
    report(0.0, "running through the plan")
    timeline, link = simulate(plan, graph, machine, seconds), link_model(machine)
    index = PlanIndex(graph, plan)
    report(0.2, "sharing waits among the copies they are for")
    waits = tuple(share for wait in compute_waits(index, timeline) for share in wait.shares)
    slot, holders = _peak(index)
    by_kind: dict[str, int] = defaultdict(int)
    for holder in holders:
        by_kind[holder.kind] += holder.bytes
    sizes = [storage.bytes for storage in graph.storages]
    why = report.part(0.4, 1.0, "looking why tensors leave or stay")
    return Explanation(
        name=graph.name, machine=machine.name, method=plan.method,
        budget_bytes=plan.budget_bytes, arena_bytes=plan.peak_bytes,
        peak_bytes=sum(holder.bytes for holder in holders), peak_slot=slot,
        peak_op=graph.ops[plan.order[slot]].name if plan.order else "",
        holders=holders, bytes_by_kind=tuple(sorted(by_kind.items(), key=lambda item: -item[1])),
        step_seconds=timeline.seconds,
        compute_seconds=fsum((timeline.compute[:, 1] - timeline.compute[:, 0]).tolist()),
        stall_seconds=fsum(wait.seconds for wait in waits), waits=waits,
        stalls_by_storage=_by_storage(waits, graph), stalls_by_op=_by_op(waits, plan, graph),
        limit=bottleneck_of(plan, timeline, sizes, link), decisions=swap_decisions(index, timeline, link, why),
        approximate=approximation(graph, machine), outside_bytes=graph.outside_bytes,
    )  # fmt: skip


def _peak(index: PlanIndex) -> tuple[int, tuple[Holding, ...]]:
    """The slot with the most bytes on the device, and the storages there then."""
    graph, plan = index.graph, index.plan
    change = np.zeros(index.slots + 1, np.int64)
    np.add.at(change, index.start, index.bytes)
    np.add.at(change, index.stop, -index.bytes)
    slot = int(np.cumsum(change)[: max(1, len(plan.order))].argmax())
    there = [
        graph.storages[residency.storage] for residency in plan.residencies if residency.start <= slot < residency.stop
    ]
    there.sort(key=lambda storage: (-storage.bytes, storage.id))
    return slot, tuple(Holding(one.id, one.name, str(one.kind), one.bytes) for one in there if one.bytes)


def _by_storage(waits: tuple[WaitShare, ...], graph: Graph) -> tuple[StorageStall, ...]:
    shares: dict[int, dict[str, list[float]]] = defaultdict(lambda: {"in": [], "out": []})
    for wait in waits:
        shares[wait.storage][wait.direction].append(wait.seconds)
    stalls = []
    for storage, share in shares.items():
        one, inwards, outwards = graph.storages[storage], fsum(share["in"]), fsum(share["out"])
        stalls.append(StorageStall(storage, one.name, str(one.kind), one.bytes, inwards + outwards, inwards, outwards))
    return tuple(sorted(stalls, key=lambda stall: (-stall.seconds, stall.storage)))


def _by_op(waits: tuple[WaitShare, ...], plan: SwapPlan, graph: Graph) -> tuple[OpStall, ...]:
    shares: dict[int, list[float]] = defaultdict(list)
    for wait in waits:
        shares[wait.slot].append(wait.seconds)
    stalls = []
    for slot, share in shares.items():
        op = plan.order[slot] if slot < len(plan.order) else -1
        stalls.append(OpStall(op, graph.ops[op].name if op >= 0 else "", slot, fsum(share)))
    return tuple(sorted(stalls, key=lambda stall: (-stall.seconds, stall.slot)))
