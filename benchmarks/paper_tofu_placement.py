"""Whole layers on GPUs in turn, all of which run at once as far as the graph allows."""

from __future__ import annotations

from math import prod

import numpy as np
from paper_tofu_case import Case, Outcome

from planner.graph import Graph
from planner.machine import Machine, op_seconds


def operator_placement(case: Case) -> Outcome:
    """Layers on devices in turn, all running at once as far as the graph allows; the batch is halved until it fits."""
    batch = case.batch
    while batch >= 1:
        graph = case.graph(batch)
        device = placed(graph, case.workers)
        if max(live_bytes(graph, device, case.workers)) <= case.memory:
            return Outcome(batch / pipelined_seconds(graph, device, case.machine), batch)
        batch //= 2
    return Outcome(0, 0, "does not fit")


def placed(graph: Graph, devices: int) -> list[int]:
    """The device of every op: that of its layer, or of what it reads if it belongs to none."""
    layers: dict[str, int] = {}
    owner: dict[int, int] = {}
    found = []
    for op in graph.ops:
        parts = op.module.split(".")
        layer = ".".join(parts[: 1 + sum(part.isdigit() for part in parts[1:3])]) if op.module else ""
        storages = [graph.tensors[tensor].storage for tensor in op.inputs]
        known = [owner[storage] for storage in storages if storage in owner]
        device = known[0] if not layer and known else layers.setdefault(layer, len(layers) % devices)
        found.append(device)
        for storage in (*storages, *(graph.tensors[tensor].storage for tensor in op.outputs)):
            owner.setdefault(storage, device)
    return found


def live_bytes(graph: Graph, device: list[int], devices: int) -> list[int]:
    """The most bytes that each device holds at once, in captured order; a storage is where it is first used."""
    change = np.zeros((devices, len(graph.ops) + 1), np.int64)
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for op in graph.ops:
        for tensor in (*op.inputs, *op.outputs):
            first.setdefault(graph.tensors[tensor].storage, op.id)
            last[graph.tensors[tensor].storage] = op.id
    for number, start in first.items():
        storage = graph.storages[number]
        change[device[start], 0 if storage.live_in else start] += storage.bytes
        change[device[start], len(graph.ops) if storage.persistent else last[number] + 1] -= storage.bytes
    return [int(held) for held in change.cumsum(1).max(1)]


def pipelined_seconds(graph: Graph, device: list[int], machine: Machine) -> float:
    """The step's time when each device runs its ops in captured order as soon as what they read is there."""
    link = machine.peer_link
    assert link is not None
    seconds = op_seconds(graph, machine)
    free = [0.0] * len(machine.devices)
    ready: dict[int, float] = {}
    copied: dict[tuple[int, int], float] = {}
    maker = {tensor: op.id for op in graph.ops for tensor in op.outputs}
    for op in graph.ops:
        here, start = device[op.id], free[device[op.id]]
        for tensor in op.inputs:
            root = tensor if graph.tensors[tensor].base < 0 else graph.tensors[tensor].base
            while graph.tensors[root].base >= 0:
                root = graph.tensors[root].base
            if root not in maker:
                continue
            at = ready[maker[root]]
            if device[maker[root]] != here:
                moved = at + link.latency + 4 * prod(graph.tensors[root].shape) / link.bandwidth
                at = copied.setdefault((root, here), moved)
            start = max(start, at)
        free[here] = ready[op.id] = start + float(seconds[op.id])
    return max(free)
