"""Operator placement: whole layers on devices in turn, which all run at once as far as the graph allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.errors import StowageError
from planner.graph import Graph
from planner.machine import Machine, op_seconds


@dataclass(frozen=True, slots=True)
class Placement:
    """Ops on devices.

    Args:
        devices: by op, its device.
        peak_bytes: by device, the most that it holds at once; a storage is on the device that uses it first.
        seconds: length of the step when each device runs its ops in captured order, as soon as what they read is there.
    """

    devices: tuple[int, ...]
    peak_bytes: tuple[int, ...]
    seconds: float


def place_operators(graph: Graph, machine: Machine) -> Placement:
    """Place every layer, forward, backward and update, on the next of the machine's devices.

    Args:
        graph: the step.
        machine: several devices that are linked.

    Raises:
        StowageError: the machine has no link between devices.
    """
    if machine.peer_link is None:
        raise StowageError(f"{machine.name} has no link between devices; choose a machine with several")
    devices = _devices(graph, len(machine.devices))
    peaks = _peak_bytes(graph, devices, len(machine.devices))
    return Placement(tuple(devices), tuple(peaks), _seconds(graph, devices, machine))


def _devices(graph: Graph, count: int) -> list[int]:
    """The device of every op: that of its layer, or of what it reads if it belongs to none."""
    layers: dict[str, int] = {}
    owner: dict[int, int] = {}
    found = []
    for op in graph.ops:
        parts = op.module.split(".")
        layer = ".".join(parts[: 1 + sum(part.isdigit() for part in parts[1:3])]) if op.module else ""
        storages = [graph.tensors[tensor].storage for tensor in op.inputs]
        known = [owner[storage] for storage in storages if storage in owner]
        device = known[0] if not layer and known else layers.setdefault(layer, len(layers) % count)
        found.append(device)
        for storage in (*storages, *(graph.tensors[tensor].storage for tensor in op.outputs)):
            owner.setdefault(storage, device)
    return found


def _peak_bytes(graph: Graph, device: list[int], count: int) -> list[int]:
    change = np.zeros((count, len(graph.ops) + 1), np.int64)
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


def _seconds(graph: Graph, device: list[int], machine: Machine) -> float:
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
            root = tensor
            while graph.tensors[root].base >= 0:
                root = graph.tensors[root].base
            if root not in maker:
                continue
            at = ready[maker[root]]
            if device[maker[root]] != here:
                storage = graph.storages[graph.tensors[root].storage]
                moved = at + link.latency + storage.bytes / link.bandwidth
                at = copied.setdefault((root, here), moved)
            start = max(start, at)
        free[here] = ready[op.id] = start + float(seconds[op.id])
    return max(free)
