"""The input of the planners, as arrays that the kernels read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.cancel import CancelToken
from planner.errors import StowageError
from planner.graph import Csr, Graph, GraphArrays, Op, arrays, csr, inverted
from planner.machine import Machine, is_collective

Ints = NDArray[np.int32]
Bytes = NDArray[np.int64]
Flags = NDArray[np.bool_]
Seconds = NDArray[np.float64]

#: Upper limit on bandwidth in bytes per second: no link is faster, and copies at this rate take no time next to a step.
_FASTEST = 1e15


class ProblemArrays(NamedTuple):
    """The graph for kernels: per op the storages it touches, per storage its size and lifetime.

    `touches` lists the storages an op reads or writes, its workspace included, each once; `writes` says for each entry
    whether it is written. `creates` is the storage that an op may create in the buffer of another one, or -1, and
    `overwrites` lists those other storages. `bytes` is rounded up to the alignment; a storage of 0 bytes takes no
    memory and kernels never see it. `live_in` storages exist before the step, `persistent` ones must be complete
    again after it, `updated` ones exist already when some op writes them, and `live_out` ones still exist when the step
    returns.
    """

    touches: Csr
    writes: Flags
    overwrites: Csr
    creates: Ints
    bytes: Bytes
    live_in: Flags
    persistent: Flags
    updated: Flags
    live_out: Flags


class LinkModel(NamedTuple):
    """The host link: bytes per second one way, share of it left when both ways are busy, seconds added per copy."""

    bandwidth: float
    shared: float
    latency: float


@dataclass(frozen=True, eq=False)
class Problem:
    """A graph to run on a machine within a budget.

    What is planned are *instances* of the graph's ops and storages. As `build_problem` makes it, a problem has each
    op and storage once, under its own number; where ops run again, their instances and those of the storages that they
    make anew have numbers of their own, and only an assembled plan names the graph's.

    Args:
        graph, machine: what to plan, and where it runs.
        arrays: the instances for kernels.
        predecessors, successors: ops that must come before and after each op; random ops keep their order.
        seconds: `[ops]`, how long each op runs.
        op_of, storage_of: `[ops]` and `[storages]`, which one of the graph each is an instance of.
        link: the host link.
        budget: device bytes, as requested.
        memory: what of it an arena may take, rounded down to the alignment, in bytes.
        alignment: bytes.
        stop: cancels all work on the problem.
    """

    graph: Graph
    machine: Machine
    arrays: ProblemArrays
    predecessors: Csr
    successors: Csr
    seconds: Seconds
    op_of: Ints
    storage_of: Ints
    link: LinkModel
    budget: int
    memory: int
    alignment: int
    stop: CancelToken = field(default_factory=CancelToken, repr=False)

    @property
    def arena_budget(self) -> int:
        """Bytes that an arena may take: the budget without the scratch memory outside of it."""
        return max(0, self.budget - self.graph.outside_bytes)

    def within(self, budget: int) -> Problem:
        """The same problem with another budget, in device bytes."""
        memory = max(0, budget - self.graph.outside_bytes) // self.alignment * self.alignment
        return replace(self, budget=budget, memory=memory)

    @property
    def ops(self) -> int:
        """Number of ops."""
        return len(self.op_of)

    @property
    def storages(self) -> int:
        """Number of storages, workspaces included."""
        return len(self.storage_of)

    @cached_property
    def nodes(self) -> tuple[Op, ...]:
        """`[ops]`, the op of the graph that each is an instance of."""
        return tuple(self.graph.ops[op] for op in self.op_of.tolist())

    @cached_property
    def op_seconds(self) -> Seconds:
        """How long each op of the graph runs."""
        found = np.zeros(len(self.graph.ops))
        found[self.op_of] = self.seconds
        return found

    @cached_property
    def sizes(self) -> Bytes:
        """`[storages]`, bytes, not rounded up to the alignment."""
        return np.array([storage.bytes for storage in self.graph.storages], np.int64)[self.storage_of]

    @cached_property
    def compute_seconds(self) -> Seconds:
        """`[ops]`, how long each op must run on the compute lane."""
        if not self.may_run_beside.any():
            return self.seconds
        return np.where(self.may_run_beside, 0.0, self.seconds)

    @cached_property
    def may_run_beside(self) -> Flags:
        """`[ops]`, whether each op may run beside those of the compute lane: collectives, where the machine can."""
        return np.array([self.machine.communicates_beside and is_collective(op) for op in self.nodes], np.bool_)

    @property
    def ideal_seconds(self) -> float:
        """The step's time with infinite memory; a worker's, where the busier of compute and collectives never waits."""
        return max(float(self.compute_seconds.sum()), float(self.seconds[self.may_run_beside].sum()))


def link_model(machine: Machine) -> LinkModel:
    """The host link of a machine in the form that kernels read.

    Raises:
        StowageError: the figures of the link are impossible.
    """
    link = machine.host_link
    rates = (link.bandwidth, link.duplex_bandwidth)
    if not (all(1 <= rate <= _FASTEST for rate in rates) and isfinite(link.latency) and link.latency >= 0):
        raise StowageError(
            f"the host link of {machine.name} has {link.bandwidth} bytes/s one way, {link.duplex_bandwidth} both ways "
            f"and a latency of {link.latency} s; give it 1 to 1e15 bytes/s and a latency of 0 s or more"
        )
    return LinkModel(link.bandwidth, min(1.0, link.duplex_bandwidth / (2 * link.bandwidth)), link.latency)


def durations(graph: Graph, seconds: Seconds) -> Seconds:
    """How long each op of a graph runs, in the form that kernels read.

    Args:
        graph: the graph of the ops.
        seconds: `[ops]`.

    Raises:
        StowageError: `seconds` is not one finite, non-negative number per op; with other times a kernel may never end.
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
        wrong = int(np.argmax(~((times >= 0) & np.isfinite(times))))
        raise StowageError(
            f"op {graph.ops[wrong].name} cannot take {times[wrong]} seconds; give finite times of 0 or more"
        )
    return times


def build_problem(
    graph: Graph, machine: Machine, budget: int, seconds: Seconds, stop: CancelToken | None = None
) -> Problem:
    """Lay out a graph for the kernels.

    Args:
        graph, machine: what to plan, and where it runs.
        budget: device bytes.
        seconds: `[ops]`, how long each op runs.
        stop: cancels this call and all later work on the problem; None to never cancel.

    Raises:
        StowageError: the op times or the figures of the host link are impossible.
        Cancelled: cancellation was requested.
    """
    stop = stop or CancelToken()
    graph_arrays = arrays(graph)
    stop.check()
    alignment = machine.device.alignment
    sizes = (graph_arrays.bytes + alignment - 1) // alignment * alignment
    touches, writes = graph_arrays.touches(sizes > 0)
    stop.check()
    reused_buffers = _reusable_buffers(graph_arrays)
    stop.check()
    problem_arrays = ProblemArrays(
        touches=touches,
        writes=writes,
        overwrites=reused_buffers,
        creates=np.where(np.diff(reused_buffers.start) > 0, graph_arrays.creates, -1).astype(np.int32),
        bytes=sizes,
        live_in=graph_arrays.live_in,
        persistent=graph_arrays.persistent,
        updated=graph_arrays.updated,
        live_out=graph_arrays.live_out,
    )
    predecessors, successors = _edges(graph)
    stop.check()
    return Problem(
        graph, machine, problem_arrays, predecessors, successors, durations(graph, seconds),
        np.arange(len(graph.ops), dtype=np.int32), np.arange(len(graph.storages), dtype=np.int32), link_model(machine),
        budget, 0, alignment, stop,
    ).within(budget)  # fmt: skip


def _edges(graph: Graph) -> tuple[Csr, Csr]:
    """Per op, the ops that must come before and after it; ops that draw random numbers keep their order."""
    before = [list(ops) for ops in graph.dependencies]
    for earlier, later in pairwise([op.id for op in graph.ops if op.random]):
        before[later].append(earlier)
    return csr(before), csr(inverted(before))


def _reusable_buffers(graph_arrays: GraphArrays) -> Csr:
    """Per op, the storages whose buffers its result may reuse, provided that it is the last op to use them."""
    rows: list[list[int]] = []
    for op, created in enumerate(graph_arrays.creates.tolist()):
        row = graph_arrays.overwrites.items[
            graph_arrays.overwrites.start[op] : graph_arrays.overwrites.start[op + 1]
        ].tolist()
        rows.append([s for s in row if created >= 0 and _may_be_reused(graph_arrays, s, created)])
    return csr(rows)


def _may_be_reused(graph_arrays: GraphArrays, reused_buffer: int, created: int) -> bool:
    temporary = not (
        graph_arrays.live_in[reused_buffer] or graph_arrays.live_out[reused_buffer] or graph_arrays.live_in[created]
    )
    return bool(
        temporary and reused_buffer != created and 0 < graph_arrays.bytes[reused_buffer] == graph_arrays.bytes[created]
    )
