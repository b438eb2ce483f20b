"""What a planner is given, as arrays that the kernels read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.errors import StowageError
from planner.graph import Csr, Graph, GraphArrays, arrays, csr
from planner.machine.types import Machine
from planner.swap.stop import Stop

Ints = NDArray[np.int32]
Bytes = NDArray[np.int64]
Flags = NDArray[np.bool_]
Seconds = NDArray[np.float64]

#: Bytes per second that no link has: copies so fast would take no time at all beside that of a step.
_FASTEST = 1e15


class Flow(NamedTuple):
    """The graph for kernels: per op what it touches, per storage its size and what must become of it.

    `touches` lists the storages an op reads or writes, its workspace too, each once; `writes` says of each entry
    whether it is written. `creates` and `overwrites` are the storage an op may make in the memory of another, and those
    others. `bytes` is rounded up to the alignment; a storage without bytes takes no memory and no kernel ever meets it.
    `held` is there before the step, `stateful` whole again after it, `kept` still there when the step returns.
    """

    touches: Csr
    writes: Flags
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
        flow: the graph for kernels.
        predecessors, successors: what must come before and after each op; random ops keep their order.
        seconds: `[ops]`, how long each op runs.
        copies: the host link.
        budget: device bytes, as asked for.
        memory: the budget rounded down to the alignment.
        alignment: bytes.
        stop: whether to stop all work on it.
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
    stop: Stop = field(default_factory=Stop, repr=False)

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
    """The host link of a machine as the kernels take it.

    Raises:
        StowageError: its figures are those of no link.
    """
    way = machine.host_link
    rates = (way.bandwidth, way.duplex_bandwidth)
    if not (all(1 <= rate <= _FASTEST for rate in rates) and isfinite(way.latency) and way.latency >= 0):
        raise StowageError(
            f"the host link of {machine.name} has {way.bandwidth} bytes/s one way, {way.duplex_bandwidth} both ways "
            f"and a latency of {way.latency} s; give it 1 to 1e15 bytes/s and a latency of 0 s or more"
        )
    return Copies(way.bandwidth, min(1.0, way.duplex_bandwidth / (2 * way.bandwidth)), way.latency)


def durations(graph: Graph, seconds: Seconds) -> Seconds:
    """How long each op of a graph runs, as the kernels take it.

    Args:
        graph: whose ops.
        seconds: `[ops]`.

    Raises:
        StowageError: it is no such array: a kernel that is given other times may never end.
    """
    try:
        times = np.ascontiguousarray(seconds, np.float64)
    except (TypeError, ValueError) as error:
        raise StowageError("op times must be numbers: give the seconds of each op") from error
    if times.shape != (len(graph.ops),):
        raise StowageError(
            f"op times of shape {list(times.shape)} are not for {graph.name}; give one number of seconds for each of "
            f"its {len(graph.ops)} ops"
        )
    if not (times >= 0).all() or not isfinite(times.sum()):
        odd = int(np.argmax(~((times >= 0) & np.isfinite(times))))
        raise StowageError(f"op {graph.ops[odd].name} cannot take {times[odd]} seconds; give finite times of 0 or more")
    return times


def state(graph: Graph, machine: Machine, budget: int, seconds: Seconds, stop: Stop | None = None) -> Problem:
    """Lay out a graph for the kernels.

    Args:
        graph, machine: what and where.
        budget: device bytes.
        seconds: `[ops]`, how long each op runs.
        stop: whether to stop, now and whenever somebody works on the problem; None for never.

    Raises:
        StowageError: the op times or the figures of the host link are impossible.
        Stopped: it was asked to stop.
    """
    stop = stop or Stop()
    flat = arrays(graph)
    stop.check()
    alignment = machine.device.alignment
    sizes = (flat.bytes + alignment - 1) // alignment * alignment
    touches, writes = _touches(flat, sizes)
    stop.check()
    donors = _donors(flat)
    stop.check()
    flow = Flow(
        touches=touches,
        writes=writes,
        overwrites=donors,
        creates=np.where(np.diff(donors.start) > 0, flat.creates, -1).astype(np.int32),
        bytes=sizes,
        held=flat.held,
        stateful=flat.persistent,
        updated=flat.updated,
        kept=flat.output,
    )
    before, after = _edges(graph)
    stop.check()
    return Problem(
        graph, machine, flow, before, after, durations(graph, seconds), link(machine),
        budget, budget // alignment * alignment, alignment, stop,
    )  # fmt: skip


def _edges(graph: Graph) -> tuple[Csr, Csr]:
    """Per op, those that must come before and after it; ops that draw random numbers keep their order."""
    before = [list(ops) for ops in graph.dependencies]
    for earlier, later in pairwise([op.id for op in graph.ops if op.random]):
        before[later].append(earlier)
    return csr(before), csr(turned(before))


def turned(before: Sequence[Sequence[int]]) -> list[list[int]]:
    """From who comes before each op to who comes after it."""
    after: list[list[int]] = [[] for _ in before]
    for later, ops in enumerate(before):
        for earlier in ops:
            after[earlier].append(later)
    return after


def _touches(flat: GraphArrays, sizes: Bytes) -> tuple[Csr, Flags]:
    """What each op reads or writes and takes memory, each once, and whether it writes it."""
    rows: list[dict[int, bool]] = []
    for op in range(flat.op_count):
        reads = flat.reads.items[flat.reads.start[op] : flat.reads.start[op + 1]].tolist()
        writes = flat.writes.items[flat.writes.start[op] : flat.writes.start[op + 1]].tolist()
        row = dict.fromkeys(reads, False) | dict.fromkeys(writes, True)
        rows.append({storage: written for storage, written in row.items() if sizes[storage] > 0})
    return csr([list(row) for row in rows]), np.array([written for row in rows for written in row.values()], np.bool_)


def _donors(flat: GraphArrays) -> Csr:
    """Per op, the storages whose memory what it creates may take over, if it is the last to use them."""
    rows: list[list[int]] = []
    for op, made in enumerate(flat.creates.tolist()):
        row = flat.overwrites.items[flat.overwrites.start[op] : flat.overwrites.start[op + 1]].tolist()
        rows.append([s for s in row if made >= 0 and _may_give(flat, s, made)])
    return csr(rows)


def _may_give(flat: GraphArrays, donor: int, heir: int) -> bool:
    fleeting = not (flat.held[donor] or flat.output[donor] or flat.held[heir])
    return bool(fleeting and donor != heir and 0 < flat.bytes[donor] == flat.bytes[heir])
