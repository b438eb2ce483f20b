"""Tensors that may stay partial sums, because all that is done with them is to add them up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from planner.graph import Graph, Op
from planner.partition.op_strategies import SplittableOp
from planner.partition.strategy import Partial, Replicated, Strategy, Unread
from planner.partition.tdl import Reduction

_SUM = Partial(Reduction.SUM)


def adds_up(strategy: Strategy) -> bool:
    """Whether a strategy runs the whole op on partial sums and reads nothing else."""
    return strategy.axis is None and not any(isinstance(state, Replicated) for state in strategy.inputs)


def carried_sums(graph: Graph, ops: Sequence[SplittableOp]) -> frozenset[int]:
    """The tensors that are worth keeping as partial sums: what is accumulated over time steps or branches.

    Each is made by an op that can leave a partial sum, every op that reads it only adds up, and either what such an op
    makes can be carried on or it adds up several carried tensors, so that they are reduced together.

    Args:
        graph: the step.
        ops: its ops with their strategies.
    """
    versions: dict[int, int] = defaultdict(int)
    for tensor in graph.tensors:
        versions[tensor.storage] += tensor.base < 0
    root = [tensor.id for tensor in graph.tensors]
    for tensor in graph.tensors:
        if tensor.base >= 0:
            root[tensor.id] = root[tensor.base]
    kept = {root[tensor] for tensor in graph.outputs}
    readers: dict[int, list[tuple[Op, SplittableOp]]] = defaultdict(list)
    carried: set[int] = set()
    for op, splittable in zip(graph.ops, ops, strict=True):
        for read in {root[tensor] for tensor in op.inputs}:
            readers[read].append((op, splittable))
        for place, made in enumerate(op.outputs):
            storage = graph.storages[graph.tensors[made].storage]
            alone = root[made] == made and versions[storage.id] == 1
            if alone and not storage.live_in and made not in kept and _leaves_sums(splittable, place):
                carried.add(made)
    maker = {tensor: op for op in graph.ops for tensor in op.outputs}
    splittable_of = {op.id: splittable for op, splittable in zip(graph.ops, ops, strict=True)}

    def stays(tensor: int) -> bool:
        source = maker[tensor]
        if not _makes_sums(source, splittable_of[source.id], root, carried, source.outputs.index(tensor)):
            return False
        return bool(readers[tensor]) and all(
            _reads_sums(op, splittable, tensor, root, carried) for op, splittable in readers[tensor]
        )

    while lost := {tensor for tensor in carried if not stays(tensor)}:
        carried -= lost
    return frozenset(carried)


def _leaves_sums(splittable: SplittableOp, place: int) -> bool:
    return any(splittable.output_states(strategy)[place] == _SUM for strategy in splittable.strategies)


def _makes_sums(op: Op, splittable: SplittableOp, root: Sequence[int], carried: set[int], place: int) -> bool:
    for strategy in splittable.strategies:
        if strategy.axis is not None and splittable.output_states(strategy)[place] == _SUM:
            return True
        if adds_up(strategy) and any(
            root[tensor] in carried for tensor, state in zip(op.inputs, strategy.inputs, strict=True) if state == _SUM
        ):
            return True
    return False


def _reads_sums(op: Op, splittable: SplittableOp, tensor: int, root: Sequence[int], carried: set[int]) -> bool:
    for strategy in splittable.strategies:
        if not adds_up(strategy):
            continue
        taken = [place for place, state in enumerate(strategy.inputs) if state == _SUM]
        read = [place for place, state in enumerate(strategy.inputs) if not isinstance(state, Unread)]
        if any(root[op.inputs[place]] == tensor and place not in taken for place in read):
            continue
        if sum(root[op.inputs[place]] in carried for place in taken) > 1 or any(made in carried for made in op.outputs):
            return True
    return False
