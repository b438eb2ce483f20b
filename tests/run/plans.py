"""Plans made by hand: everything stays where it is, in any order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.graph import Graph, fingerprint
from planner.plan import Residency, SwapPlan, Timeline, device_queues

ALIGNMENT = 64


def resident_plan(graph: Graph, order: Sequence[int] | None = None) -> SwapPlan:
    """Every storage has memory of its own for as long as it lives; nothing is swapped and nothing is overwritten."""
    order = tuple(range(len(graph.ops))) if order is None else tuple(order)
    n = len(order)
    slots = {op: slot for slot, op in enumerate(order)}
    touched: dict[int, list[int]] = {storage.id: [] for storage in graph.storages}
    for op in graph.ops:
        for storage in {*graph.reads[op.id], *graph.writes[op.id], *({op.workspace} - {-1})}:
            touched[storage].append(slots[op.id])
    residencies, offset = [], 0
    for storage in graph.storages:
        if not storage.bytes:
            continue
        whole = storage.live_in or storage.id in graph.output_storages
        start = 0 if storage.live_in else min(touched[storage.id], default=0)
        stop = n if whole else max(touched[storage.id], default=0) + 1
        residencies.append(Residency(storage.id, start, stop, offset))
        offset += -(-storage.bytes // ALIGNMENT) * ALIGNMENT
    peak = max((stay.offset + graph.storages[stay.storage].bytes for stay in residencies), default=0)
    empty = np.zeros((0, 2))
    predicted = Timeline.of_device(1.0, np.zeros((n, 2)), empty, empty, np.zeros(1), np.zeros(1, np.int64))
    workspaces = tuple((op.id, graph.workspace_bytes(op.id)) for op in graph.ops if op.workspace >= 0)
    return SwapPlan(
        graph=fingerprint(graph), machine="cpu", method="by hand", budget_bytes=2 * peak, host_budget_bytes=None,
        alignment=ALIGNMENT, queues=device_queues(order), workspaces=workspaces,
        residencies=tuple(residencies), host_residencies=(), peak_bytes=peak, host_bytes=0, predicted=predicted,
    )  # fmt: skip
