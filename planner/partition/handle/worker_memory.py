"""Memory per worker: lifetimes of the whole step, scaled by what each worker holds, and what it fetches for an op."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from planner.errors import StowageError
from planner.graph import Graph, Op
from planner.memory import lifetimes
from planner.partition.op_strategies import SplittableOp, splittable_ops
from planner.partition.plan import AxisDivision, Division, LinearDivision, PartitionPlan
from planner.partition.strategy import Partial, Replicated, Split, State, Unread
from planner.partition.tdl import Reduction

#: The states of a tensor, level by level; None where no split of a view is its root's.
States = tuple[State | None, ...]
Shares = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WorkerMemory:
    """The memory that each worker takes, in bytes.

    Args:
        peak_bytes: per worker, the most at once: storages that are alive, and what the op that runs fetches or makes
            before it is stored.
        persistent_bytes: per worker, parameters, buffers, optimizer state and inputs at the start of the step.
        op: the op at the peak of the worker that takes the most; -1 for a step without ops.
        tensor: the largest tensor that this worker has then; -1 if it has none.
        tensor_bytes: how many bytes of that tensor it has.
    """

    peak_bytes: tuple[int, ...]
    persistent_bytes: tuple[int, ...]
    op: int
    tensor: int
    tensor_bytes: int

    @property
    def most(self) -> int:
        """The bytes of the worker that takes the most."""
        return max(self.peak_bytes)


class WorkerShares:
    """What share of a tensor each worker has.

    Args:
        mesh: how many parts each level makes of each part, the outermost first.
    """

    def __init__(self, mesh: Sequence[int]) -> None:
        self.mesh, self.workers = tuple(mesh), prod(mesh)
        self._known: dict[object, Shares] = {}
        places = np.arange(self.workers)
        self._places = []
        for level, parts in enumerate(self.mesh):
            self._places.append(places // prod(self.mesh[level + 1 :]) % parts)

    def of(self, states: States) -> Shares:
        """`[workers]`, the share of the elements of a tensor that is spread so; halos are left out."""
        if states not in self._known:
            shares = np.ones(self.workers)
            lengths: dict[tuple[int, int, int, int], NDArray[np.int64]] = {}
            for parts, places, state in zip(self.mesh, self._places, states, strict=True):
                if isinstance(state, Unread):
                    shares = np.zeros(self.workers)
                if isinstance(state, Split):
                    factor = state.dimension, state.outer, state.size, state.inner
                    before = lengths.get(factor, np.full(self.workers, state.size))
                    lengths[factor] = before * (places + 1) // parts - before * places // parts
            for (_, _, size, _), length in lengths.items():
                shares = shares * (length / size)
            self._known[states] = shares
        return self._known[states]


def worker_memory(graph: Graph, plan: PartitionPlan, ops: Sequence[SplittableOp] | None = None) -> WorkerMemory:
    """Estimate the memory that each worker takes when ops run in captured order and nothing is swapped.

    A storage takes the share of its bytes that the worker has of it, for as long as it is alive on one device. While an
    op runs, what it fetches of its inputs and what it makes that is stored otherwise come on top, each by itself.

    Args:
        graph: the step.
        plan: its partition.
        ops: the graph's ops with their strategies; found if not given.

    Raises:
        StowageError: the arguments are in another order.
    """
    if not isinstance(graph, Graph) or not isinstance(plan, PartitionPlan):
        raise StowageError("worker_memory takes a graph and its partition, in this order")
    ops = splittable_ops(graph) if ops is None else ops
    shares = WorkerShares(plan.mesh)
    held = _held(graph, plan, shares)
    life = lifetimes(graph)
    change = np.zeros((len(graph.ops) + 1, shares.workers))
    np.add.at(change, life.birth, held)
    np.add.at(change, life.end, -held)
    resident = np.cumsum(change, axis=0)[: len(graph.ops)]
    total = resident + _fetched(graph, plan, shares, ops)
    live_in = np.array([storage.live_in for storage in graph.storages], np.bool_)
    persistent = tuple(round(size) for size in held[live_in].sum(axis=0).tolist())
    if not len(graph.ops):
        return WorkerMemory(persistent, persistent, -1, -1, 0)
    peaks = total.max(axis=0)
    worker = int(peaks.argmax())
    op = int(total[:, worker].argmax())
    alive = np.flatnonzero((life.birth <= op) & (op < life.end))
    largest = int(alive[held[alive, worker].argmax()]) if len(alive) else -1
    roots = {tensor.storage: tensor.id for tensor in reversed(graph.tensors) if tensor.base < 0}
    return WorkerMemory(
        tuple(round(peak) for peak in peaks.tolist()), persistent, op, roots.get(largest, -1),
        round(float(held[largest, worker])) if largest >= 0 else 0,
    )  # fmt: skip


def _held(graph: Graph, plan: PartitionPlan, shares: WorkerShares) -> NDArray[np.float64]:
    """`[storages, workers]`, the bytes that each worker has of each storage."""
    held = np.zeros((len(graph.storages), shares.workers))
    for storage in graph.storages:  # workspaces have no tensors: they shrink with their op, about evenly
        held[storage.id] = storage.bytes / shares.workers
    for tensor in reversed(graph.tensors):  # the first tensor of a storage says how it is spread
        if tensor.base < 0:
            held[tensor.storage] = graph.storages[tensor.storage].bytes * shares.of(plan.tensors[tensor.id])
    return held


def _fetched(
    graph: Graph, plan: PartitionPlan, shares: WorkerShares, ops: Sequence[SplittableOp]
) -> NDArray[np.float64]:
    """`[ops, workers]`, the bytes of inputs and outputs that an op has in other states than they are stored in."""
    fetched = np.zeros((len(graph.ops), shares.workers))
    known: dict[object, NDArray[np.float64]] = {}
    for op, splittable in zip(graph.ops, ops, strict=True):
        tensors = (*op.inputs, *op.outputs)
        have = tuple(plan.tensors[tensor] for tensor in tensors)
        key = id(splittable), plan.ops[op.id], have
        if key not in known:
            known[key] = _around(graph, op, splittable, plan.ops[op.id], have, shares)
        fetched[op.id] = known[key]
    return fetched


def _around(
    graph: Graph, op: Op, splittable: SplittableOp, divisions: Sequence[Division], have: Sequence[States],
    shares: WorkerShares,
) -> NDArray[np.float64]:  # fmt: skip
    total = np.zeros(shares.workers)
    wanted = [op_states(splittable, division) for division in divisions]
    seen: set[object] = set()
    for place, (tensor, states) in enumerate(zip((*op.inputs, *op.outputs), have, strict=True)):
        want = tuple(level[place] for level in wanted)
        if want == states or (tensor, want) in seen or (place < len(op.inputs) and _is_part_of(want, states)):
            continue
        seen.add((tensor, want))
        here = graph.tensors[tensor]
        whole = graph.storages[here.storage].bytes
        size = min(whole, prod(here.shape) * _itemsize(graph, op, splittable, place))
        total += size * shares.of(want)
    return total


def op_states(splittable: SplittableOp, division: Division) -> tuple[State, ...]:
    """How an op's inputs must be spread and how its outputs are afterwards, at a level where it is divided so."""
    inputs, outputs = len(splittable.description.inputs), len(splittable.outputs)
    if division is None:
        return (Replicated(),) * (inputs + outputs)
    if isinstance(division, LinearDivision):
        taken = (Partial(Reduction.SUM) if place in division.inputs else Unread() for place in range(inputs))
        return (*taken, *(Partial(Reduction.SUM) for _ in range(outputs)))
    strategy = next(each for each in splittable.strategies if each.axis is not None and each.axis.name == division.axis)
    return tuple(_part(state, division) for state in (*strategy.inputs, *splittable.output_states(strategy)))


def _part(state: State, division: AxisDivision) -> State:
    """The part of a split that a factor of the axis divides."""
    if not isinstance(state, Split) or (division.outer == division.inner == 1):
        return state
    return Split(state.dimension, state.outer * division.outer, division.size, state.inner * division.inner, state.halo)


def _is_part_of(want: States, have: States) -> bool:
    """Whether every worker has what it wants and can read it in place."""
    return all(
        wanted == had or isinstance(had, Replicated) or isinstance(wanted, Unread)
        for wanted, had in zip(want, have, strict=True)
    )


def _itemsize(graph: Graph, op: Op, splittable: SplittableOp, place: int) -> int:
    if place < len(op.inputs):
        return splittable.itemsizes[place]
    here = graph.tensors[op.outputs[place - len(op.inputs)]]
    return max(1, graph.storages[here.storage].bytes // max(1, prod(here.shape)))
