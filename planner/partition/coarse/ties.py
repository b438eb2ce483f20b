"""Which tensors are tied: an in-place update with what it updates, element-wise chains, time steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from planner.graph import Graph, Kind, Op
from planner.partition.coarse.groups import TensorGroups
from planner.partition.op_strategies import SplittableOp
from planner.partition.parts import compacted
from planner.partition.strategy import Split, State


def tie_storages(graph: Graph, groups: TensorGroups) -> None:
    """Tie all versions of a storage, so that a parameter is split at the end of a step as it was at its start.

    What does not fill its memory, and cannot be had in memory that it fills, stays whole.
    """
    spread_out = compacted(graph).spread_out
    first: dict[int, int] = {}
    for tensor in graph.tensors:
        if tensor.base >= 0:
            continue
        known = graph.tensors[first.setdefault(tensor.storage, tensor.id)]
        alike = (known.shape, known.strides, known.offset) == (tensor.shape, tensor.strides, tensor.offset)
        if tensor.storage in spread_out:
            groups.keep_whole(tensor.id)
        if not (alike and groups.tie(known.id, tensor.id)):
            groups.keep_whole(known.id)
            groups.keep_whole(tensor.id)


def tie_alike(graph: Graph, ops: Sequence[SplittableOp], groups: TensorGroups) -> None:
    """Tie tensors of an op that all of its strategies split alike.

    Those are what an element-wise op reads and writes, what a normalization reads and writes, a tensor and its
    gradient where one op has both, and a parameter, its gradient and the optimizer's state.
    """
    known: dict[int, list[tuple[int, int]]] = {}
    for op, splittable in zip(graph.ops, ops, strict=True):
        if id(splittable) not in known:
            known[id(splittable)] = _alike(graph, op, splittable)
        tensors = (*op.inputs, *op.outputs)
        for left, right in known[id(splittable)]:
            groups.tie(tensors[left], tensors[right])


def tie_steps(graph: Graph, ops: Sequence[SplittableOp], groups: TensorGroups) -> None:
    """Tie what ops read and write that use one parameter in the same way and phase: a cell at every time step."""
    uses: dict[object, Op] = {}
    for op, splittable in zip(graph.ops, ops, strict=True):
        for place, tensor in enumerate(op.inputs):
            if graph.storages[graph.tensors[tensor].storage].kind is not Kind.PARAMETER:
                continue
            layout = graph.tensors[tensor]
            sums = tuple(groups.root(other) in groups.sums for other in (*op.inputs, *op.outputs))
            key = groups.root(tensor), layout.offset, layout.strides, place, id(splittable), op.phase, sums
            before = uses.setdefault(key, op)
            if before is not op:
                here, there = (*before.inputs, *before.outputs), (*op.inputs, *op.outputs)
                for left, right in zip(here, there, strict=True):
                    groups.tie(left, right)


def tie_sums(graph: Graph, ops: Sequence[SplittableOp], groups: TensorGroups) -> None:
    """Tie what ops of one phase make of partial sums that are split alike: the end of a sum at every time step."""
    makers: dict[object, Op] = {}
    for op, splittable in zip(graph.ops, ops, strict=True):
        inputs = [groups.root(tensor) for tensor in op.inputs]
        if not any(tensor in groups.sums for tensor in inputs):
            continue
        layouts = tuple((groups.labels(tensor), groups.identity(tensor)) for tensor in op.inputs)
        sums = tuple(groups.root(tensor) in groups.sums for tensor in (*op.inputs, *op.outputs))
        before = makers.setdefault((id(splittable), op.phase, layouts, sums), op)
        if before is not op:
            for left, right in zip(before.outputs, op.outputs, strict=True):
                groups.tie(left, right)


def _alike(graph: Graph, op: Op, splittable: SplittableOp) -> list[tuple[int, int]]:
    states: dict[int, list[State | None]] = defaultdict(list)
    for strategy in splittable.strategies:
        if strategy.axis is None:
            continue
        for place, state in enumerate((*strategy.inputs, *splittable.output_states(strategy))):
            states[place].append(replace(state, halo=False) if isinstance(state, Split) else None)
    tensors = [graph.tensors[tensor] for tensor in (*op.inputs, *op.outputs)]
    return [
        (left, right)
        for left, right in combinations(sorted(states), 2)
        if tensors[left].shape == tensors[right].shape and states[left] == states[right] and any(states[left])
    ]
