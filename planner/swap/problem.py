"""What a planner is given, as arrays that the kernels read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.graph import Csr, Graph, arrays
from planner.machine.types import Machine

Ints = NDArray[np.int32]
Bytes = NDArray[np.int64]
Flags = NDArray[np.bool_]
Seconds = NDArray[np.float64]


class Flow(NamedTuple):
    """The graph for kernels: per op what it reads and writes, per storage its size and what must become of it.

    `bytes` is rounded up to the alignment; a storage without bytes takes no memory and no kernel ever meets it.
    `held` is there before the step, `stateful` whole again after it, `kept` still there when the step returns.
    """

    reads: Csr
    writes: Csr
    overwrites: Csr
    creates: Ints
    bytes: Bytes
    held: Flags
    stateful: Flags
    updated: Flags
    kept: Flags


class Copies(NamedTuple):
    """The host link: bytes per second one way, share of it left when both ways are busy, seconds per copy besides."""

    bandwidth: float
    shared: float
    latency: float


@dataclass(frozen=True, eq=False)
class Problem:
    """A graph to be run on a machine within a budget.

    Args:
        graph, machine: what and where.
        flow, predecessors, successors: the graph for kernels.
        seconds: `[ops]`, how long each op runs.
        copies: the host link.
        budget: device bytes, as asked for.
        memory: the budget rounded down to the alignment.
        alignment: bytes.
    """

    graph: Graph
    machine: Machine
    flow: Flow
    predecessors: Csr
    successors: Csr
    seconds: Seconds
    copies: Copies
    budget: int
    memory: int
    alignment: int

    @property
    def ops(self) -> int:
        """Number of ops."""
        return len(self.graph.ops)

    @property
    def storages(self) -> int:
        """Number of storages, workspaces included."""
        return len(self.graph.storages)

    @property
    def ideal_seconds(self) -> float:
        """The step's time with infinite memory."""
        return float(self.seconds.sum())


def link(machine: Machine) -> Copies:
    """The host link of a machine as the kernels take it."""
    way = machine.host_link
    return Copies(way.bandwidth, min(1.0, way.duplex_bandwidth / (2 * way.bandwidth)), way.latency)


def state(graph: Graph, machine: Machine, budget: int, seconds: Seconds) -> Problem:
    """Lay out a graph for the kernels.

    Args:
        graph, machine: what and where.
        budget: device bytes.
        seconds: `[ops]`, how long each op runs.
    """
    flat = arrays(graph)
    alignment = machine.device.alignment
    flow = Flow(
        reads=flat.reads,
        writes=flat.writes,
        overwrites=flat.overwrites,
        creates=flat.creates,
        bytes=(flat.bytes + alignment - 1) // alignment * alignment,
        held=flat.held,
        stateful=flat.persistent,
        updated=flat.updated,
        kept=flat.output,
    )
    durations = np.ascontiguousarray(seconds, np.float64)
    return Problem(
        graph, machine, flow, flat.predecessors, flat.successors, durations, link(machine),
        budget, budget // alignment * alignment, alignment,
    )  # fmt: skip
