"""The coarse graph of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch

from planner.graph import Graph
from planner.partition.atoms import atoms
from planner.partition.coarse.groups import TensorGroup, TensorGroups
from planner.partition.coarse.ties import tie_alike, tie_steps, tie_storages
from planner.partition.coarse.variants import Variant, variants
from planner.partition.op_strategies import SplittableOp, splittable_ops
from planner.partition.strategy import Replicated, Split


@dataclass(frozen=True, slots=True)
class Slot:
    """One input or output of merged ops.

    Args:
        group: the number of its tensor's group.
        labels: where the labels of the group are in this tensor.
        known: the labels of what it is a view of; a split that it does not have itself is one of something else.
        shape: its shape.
        itemsize: bytes of an element.
        count: how often it is moved: an input that several of the ops read is fetched once.
    """

    group: int
    labels: tuple[tuple[int, Split], ...]
    known: frozenset[int]
    shape: tuple[int, ...]
    itemsize: int
    count: int

    def state(self, label: int | None) -> Split | Replicated | None:
        """How it is spread when its group is split by a label; None if no split of this view is that one."""
        return state_of(self.labels, self.known, label)


def state_of(
    labels: tuple[tuple[int, Split], ...], known: frozenset[int], label: int | None
) -> Split | Replicated | None:
    """How a tensor is spread when its group is split by a label; None if no split of this view is that one."""
    for own, split in labels:
        if own == label:
            return split
    return None if label in known else Replicated()


@dataclass(frozen=True, eq=False)
class MergedOp:
    """Ops with one signature and the same groups around them, which are split alike.

    Args:
        op: what they compute and how it can be split.
        ops: their positions in the graph.
        inputs, outputs: what they read and write.
        variants: the ways of splitting them.
    """

    op: SplittableOp
    ops: tuple[int, ...]
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    variants: tuple[Variant, ...]


@dataclass(frozen=True, eq=False)
class CoarseGraph:
    """Groups of tensors that are split alike, and the ops between them.

    Args:
        graph: the step.
        groups: what is split.
        group_of: the group of every tensor of the graph; views are in the group of what they view.
        labels: per tensor, where the labels of its group are in it.
        known: per tensor, the labels of what it is a view of.
        label_bytes: per group and label, the bytes of its members that have the label.
        merged: the ops.
    """

    graph: Graph
    groups: tuple[TensorGroup, ...]
    group_of: tuple[int, ...]
    labels: tuple[tuple[tuple[int, Split], ...], ...]
    known: tuple[frozenset[int], ...]
    label_bytes: tuple[dict[int, int], ...]
    merged: tuple[MergedOp, ...]


def coarsen(graph: Graph, ops: Sequence[SplittableOp] | None = None) -> CoarseGraph:
    """Group the tensors of a step and merge its ops.

    Args:
        graph: the step; it needs no program.
        ops: its ops with their strategies; found if not given.
    """
    ops = splittable_ops(graph) if ops is None else ops
    found = atoms(graph, ops)
    tied = TensorGroups(graph, found)
    tie_storages(graph, tied)
    tie_alike(graph, ops, tied)
    tie_steps(graph, ops, tied)
    groups = tied.groups()
    numbers = {id(group): number for number, group in enumerate(groups)}
    group_of = tuple(numbers[id(tied.of(tensor.id))] for tensor in graph.tensors)
    itemsizes = {name: getattr(torch, name).itemsize for name in {tensor.dtype for tensor in graph.tensors}}
    sizes = [prod(tensor.shape) * itemsizes[tensor.dtype] for tensor in graph.tensors]
    slots = [
        (group_of[t.id], tied.labels(t.id), frozenset(groups[group_of[t.id]].members[tied.root(t.id)].values()),
         t.shape, itemsizes[t.dtype])
        for t in graph.tensors
    ]  # fmt: skip
    alike: dict[object, list[int]] = {}
    for op, splittable in zip(graph.ops, ops, strict=True):
        key = id(splittable), tuple(slots[tensor] for tensor in (*op.inputs, *op.outputs))
        alike.setdefault(key, []).append(op.id)
    known: dict[object, tuple[Variant, ...]] = {}
    merged = []
    for members in alike.values():
        first, splittable = graph.ops[members[0]], ops[members[0]]
        tensors = (*first.inputs, *first.outputs)
        call = id(splittable), tuple(tuple(split for _, split in slots[tensor][1]) for tensor in tensors)
        if call not in known:
            known[call] = variants(splittable, tensors, found)
        read = [{_layout(tied, graph.ops[op].inputs[place]) for op in members} for place in range(len(first.inputs))]
        inputs = tuple(Slot(*slots[tensor], count=len(seen)) for tensor, seen in zip(first.inputs, read, strict=True))
        outputs = tuple(Slot(*slots[tensor], count=len(members)) for tensor in first.outputs)
        merged.append(MergedOp(splittable, tuple(members), inputs, outputs, known[call]))
    label_bytes = tuple(_label_bytes(group, sizes) for group in groups)
    labels, known_labels = tuple(slot[1] for slot in slots), tuple(slot[2] for slot in slots)
    return CoarseGraph(graph, groups, group_of, labels, known_labels, label_bytes, tuple(merged))


def _layout(groups: TensorGroups, tensor: int) -> object:
    """What tells apart the contents of two inputs: in-place updates are tensors of their own."""
    here = groups.graph.tensors[tensor]
    return groups.root(tensor), here.shape, here.strides, here.offset


def _label_bytes(group: TensorGroup, sizes: Sequence[int]) -> dict[int, int]:
    found = dict.fromkeys(group.sizes, 0)
    for tensor, labels in group.members.items():
        for label in labels.values():
            found[label] += sizes[tensor]
    return found
