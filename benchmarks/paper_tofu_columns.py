"""The ways of training a model on eight small GPUs that `paper_tofu.py` compares, each as samples per second."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, prod

import numpy as np

from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph
from planner.machine import Link, Machine, op_seconds
from planner.memory import step_peak
from planner.partition import (
    BASELINES,
    CoarseGraph,
    Partitioning,
    Split,
    StepTime,
    Unread,
    baselines,
    coarsen,
    recurse,
    step_time,
)  # fmt: skip
from planner.swap import compare_plans
from planner.zoo import load


@dataclass(frozen=True)
class Outcome:
    """What a way of training reaches.

    Args:
        samples: per second; 0 if it does not fit.
        batch: of all devices together.
        note: what is worth knowing.
    """

    samples: float
    batch: int
    note: str = ""


@dataclass(frozen=True, eq=False)
class Case:
    """A model that is trained on a machine.

    Args:
        text: the zoo's, without its batch.
        batch: of all devices together.
        machine: with several devices.
        host_bandwidth: between the host and all devices together, in bytes per second.
        seconds: of each search for swaps.
    """

    text: str
    batch: int
    machine: Machine
    host_bandwidth: float
    seconds: float

    @property
    def workers(self) -> int:
        """How many devices there are."""
        return len(self.machine.devices)

    @property
    def memory(self) -> int:
        """Bytes of each device."""
        return self.machine.device.memory_bytes

    @property
    def alone(self) -> Machine:
        """One device with its share of the link to the host."""
        own = self.host_bandwidth / self.workers
        link = Link(own, own, self.machine.host_link.latency)
        return replace(self.machine, devices=self.machine.devices[:1], host_link=link)

    def graph(self, batch: int) -> Graph:
        """The step with a batch."""
        return graph_of(f"{self.text},batch={batch}")


@lru_cache(maxsize=6)
def graph_of(text: str) -> Graph:
    """A captured step."""
    return capture(load(text), progress=False)


@lru_cache(maxsize=4)
def coarse_of(graph: Graph) -> CoarseGraph:
    """A step's coarse graph."""
    return coarsen(graph)


def ideal(case: Case) -> Outcome:
    """One device with memory without end, times the number of devices."""
    seconds = float(op_seconds(case.graph(case.batch), case.machine).sum())
    return Outcome(case.workers * case.batch / seconds, case.batch)


def small_batch(case: Case) -> Outcome:
    """Data parallelism with the largest batch that fits; gradients are reduced behind the backward pass."""
    share = largest_that_fits(case.batch // case.workers, lambda own: peak(case, case.graph(own)) <= case.memory)
    if share == 0:
        return Outcome(0, 0, "does not fit")
    batch = share * case.workers
    return Outcome(batch / data_parallel_time(case, batch).seconds, batch)


def data_parallel_time(case: Case, batch: int) -> StepTime:
    """The step time of data parallelism."""
    found = BASELINES["data-parallel"](coarse_of(case.graph(batch)), case.workers)
    return step_time(found, case.machine)


def largest_that_fits(most: int, fits: Callable[[int], bool]) -> int:
    """The largest number from 1 to `most` that fits, by bisection; 0 if none does."""
    if fits(most):
        return most
    if not fits(1):
        return 0
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def swapping(case: Case) -> Outcome:
    """Data parallelism in which every device swaps for itself, with its share of the link to the host.

    What it costs to reduce the gradients is what it costs with memory without end.
    """
    graph = case.graph(case.batch // case.workers)
    seconds = swapped_seconds(case, graph, op_seconds(graph, case.machine))
    if seconds is None:
        return Outcome(0, 0, "does not fit")
    parallel = data_parallel_time(case, case.batch)
    return Outcome(case.batch / (seconds + parallel.seconds - parallel.compute_seconds), case.batch)


def swapped_seconds(case: Case, graph: Graph, seconds: np.ndarray) -> float | None:
    """The step time of the best swap plan found within a device's memory; None if there is none."""
    try:
        found = compare_plans(
            graph, case.alone, case.memory, seconds=seconds, time_limit=case.seconds, progress=False
        )  # fmt: skip
    except StowageError:
        return None
    return found.plan.predicted.seconds


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


@lru_cache(maxsize=1)
def tofu(case: Case) -> Outcome:
    """The recursion's partition; the batch is halved until a worker's share fits."""
    batch = case.batch
    while batch >= case.workers:
        found = recurse(coarse_of(case.graph(batch)), case.workers)
        if peak(case, local_graph(found)) <= case.memory:
            time = step_time(found, case.machine)
            return Outcome(batch / time.seconds, batch)
        batch //= 2
    return Outcome(0, 0, "does not fit")


def partition_and_swapping(case: Case) -> Outcome:
    """The fastest of the recursion and the baselines, with swapping within it where it does not fit.

    The batch is the whole one, or that with which Tofu's partition fits, whichever gives more samples per second.
    Worker graphs are approximated: each storage has a worker's share of its bytes, each op its time behind the others
    and the memory of what it fetches.
    """
    batches = sorted({case.batch, tofu(case).batch or case.batch})
    return max((best_with_batch(case, batch) for batch in batches), key=lambda found: found.samples)


def best_with_batch(case: Case, batch: int) -> Outcome:
    """The fastest partition with a batch, and swapping within it."""
    coarse = coarse_of(case.graph(batch))
    known = {"recursion": recurse(coarse, case.workers), **baselines(coarse, case.workers)}
    times = {name: step_time(found, case.machine) for name, found in known.items() if found is not None}
    best: tuple[float, str] | None = None
    tried = 0
    for name in sorted(times, key=lambda name: times[name].seconds):
        found, time = known[name], times[name]
        assert found is not None
        if tried == 2 or (best is not None and best[0] <= time.seconds):
            break
        graph = local_graph(found)
        if peak(case, graph) <= case.memory:
            took: float | None = time.seconds
            note = name
        else:
            tried += 1
            busy = np.diff(time.op_ends, prepend=0.0)
            took = swapped_seconds(case, graph, busy)
            note = f"{name}, swapping"
        if took is not None and (best is None or took < best[0]):
            best = took, note
    return Outcome(0, 0, "does not fit") if best is None else Outcome(batch / best[0], batch, best[1])


def local_graph(found: Partitioning) -> Graph:
    """About the graph of one worker: its share of every storage, and what every op fetches as its workspace."""
    graph, mesh = found.coarse.graph, [level.workers for level in found.levels]

    def share(states: object) -> float:
        parts = [workers for workers, state in zip(mesh, states, strict=True) if isinstance(state, Split)]  # type: ignore[call-overload]
        return 1 / prod(parts)

    local = [storage.bytes for storage in graph.storages]
    for tensor in graph.tensors:
        if tensor.base < 0:
            whole = graph.storages[tensor.storage].bytes
            local[tensor.storage] = ceil(whole * share(found.tensor_states(tensor.id)))
    needed = {}
    for op in graph.ops:
        chosen, extra = found.op_variants(op.id), 0.0
        for place, tensor in enumerate((*op.inputs, *op.outputs)):
            used = tuple(variant.states[place] for variant in chosen)
            if any(isinstance(state, Unread) for state in used):
                continue
            more = share(used) - share(found.tensor_states(tensor))
            extra += max(0.0, more) * 4 * prod(graph.tensors[tensor].shape)
        needed[op.id] = graph.workspace_bytes(op.id) // prod(mesh) + int(extra)
    storages = tuple(replace(storage, bytes=local[storage.id]) for storage in graph.storages)
    return replace(graph, storages=storages, program=None).with_workspaces(needed)


_peaks: dict[int, tuple[Graph, int]] = {}


def peak(case: Case, graph: Graph) -> int:
    """Bytes that a step takes when nothing is swapped."""
    if id(graph) not in _peaks:
        _peaks[id(graph)] = graph, step_peak(graph, case.machine.device.alignment)
    return _peaks[id(graph)][1]


#: By name of the column.
COLUMNS: dict[str, Callable[[Case], Outcome]] = {
    "ideal": ideal,
    "small batch": small_batch,
    "swapping": swapping,
    "operator placement": operator_placement,
    "Tofu": tofu,
    "ours": partition_and_swapping,
}
