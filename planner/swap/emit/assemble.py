"""Assembles a plan from an unplaced plan, its queues and its offsets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.graph import fingerprint
from planner.plan import (
    HostResidency,
    Residency,
    SwapIn,
    SwapOut,
    SwapPlan,
    Timeline,
    device_queues,
)
from planner.swap.draft.draft import UnplacedPlan, UnplacedResidencies
from planner.swap.emit.communication import run_beside
from planner.swap.emit.host_slab import host_residencies
from planner.swap.problem.problem import Bytes, Ints, Problem
from planner.swap.simulate.streams import simulate


def assemble(
    problem: Problem,
    draft: UnplacedPlan,
    residencies: UnplacedResidencies,
    offsets: Bytes,
    outs: Ints,
    ins: Ints,
    method: str,
) -> SwapPlan:
    """Assemble a plan of the graph's own ops and storages, and predict its timeline.

    Args:
        problem, draft: what is planned, and its unplaced plan.
        residencies, offsets: the residencies and the offset of each, in bytes.
        outs, ins: the absences whose copies make up the two queues.
        method: name of the planner that made it.

    Raises:
        Cancelled: cancellation was requested.
    """
    graph, absences, storage_of = problem.graph, draft.absences, problem.storage_of
    sizes = [storage.bytes for storage in graph.storages]
    placed = sorted(
        (Residency(*row) for row in zip(
            storage_of[residencies.storage].tolist(), residencies.start.tolist(), residencies.stop.tolist(),
            offsets.tolist(), strict=True,
        )),
        key=lambda residency: (residency.start, residency.storage),
    )  # fmt: skip
    names = storage_of.tolist()
    host = [replace(place, storage=names[place.storage]) for place in host_residencies(problem, draft)]
    order = problem.op_of[draft.order].tolist()
    swap_outs = [SwapOut(*row) for row in _rows(outs, storage_of[absences.storage], absences.ready, absences.release)]
    swap_ins = [SwapIn(*row) for row in _rows(ins, storage_of[absences.storage], absences.reload, absences.use)]
    placed, beside = run_beside(problem, order, placed, swap_outs, swap_ins)
    problem.stop.check()
    plan = SwapPlan(
        graph=fingerprint(graph),
        machine=problem.machine.name,
        method=method,
        budget_bytes=problem.budget,
        host_budget_bytes=None,
        alignment=problem.alignment,
        queues=device_queues(order, swap_outs, swap_ins, beside),
        workspaces=tuple((op.id, sizes[op.workspace]) for op in graph.ops if op.workspace >= 0),
        residencies=tuple(placed),
        host_residencies=tuple(host),
        peak_bytes=_top(placed, sizes),
        host_bytes=_top(host, sizes),
        predicted=Timeline.of_device(0.0, *(np.zeros((0, 2)),) * 3, np.zeros(0), np.zeros(0, np.int64)),
    )
    problem.stop.check()
    return replace(plan, predicted=simulate(plan, graph, problem.machine, problem.op_seconds))


def _rows(queue: Ints, *columns: Ints) -> zip[tuple[int, ...]]:
    return zip(*(column[queue].tolist() for column in columns), strict=True)


def _top(spans: list[Residency] | list[HostResidency], sizes: list[int]) -> int:
    return max((span.offset + sizes[span.storage] for span in spans), default=0)
