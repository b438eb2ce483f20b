"""The coarse graph of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch

from planner.finalizers import without_garbage_collection
from planner.graph import Graph
from planner.partition.atoms import Atoms, atoms
from planner.partition.coarse.fetches import Fetch, fetches
from planner.partition.coarse.groups import TensorGroup, TensorGroups
from planner.partition.coarse.partial_sums import carried_sums
from planner.partition.coarse.ties import tie_alike, tie_steps, tie_storages, tie_sums
from planner.partition.coarse.variants import Variant, variants
from planner.partition.op_strategies import SplittableOp, splittable_ops
from planner.partition.strategy import Partial, Replicated, Split

#: How a group may be stored: split by a label, whole on every worker (None), or as partial sums.
Option = int | None | Partial
#: How a stored tensor is spread.
Stored = Split | Replicated | Partial


@dataclass(frozen=True, slots=True)
class Slot:
    """One input or output of merged ops.

    Args:
        group: the number of its tensor's group.
        labels: where the labels of the group are in this tensor.
        known: the labels of what it is a view of; a split that it does not have itself is one of something else.
        shape: its shape.
        itemsize: bytes of an element.
    """

    group: int
    labels: tuple[tuple[int, Split], ...]
    known: frozenset[int]
    shape: tuple[int, ...]
    itemsize: int

    def state(self, option: Option) -> Stored | None:
        """How it is spread when its group is stored in a way; None if no split of this view is that one."""
        return state_of(self.labels, self.known, option)

    def label(self, split: Split) -> int | None:
        """The label of a split of it; None if it is no split of what it views."""
        return next((label for label, own in self.labels if own == split), None)


def state_of(labels: tuple[tuple[int, Split], ...], known: frozenset[int], option: Option) -> Stored | None:
    """How a tensor is spread when its group is stored in a way; None if no split of this view is that one."""
    if isinstance(option, Partial):
        return option
    for own, split in labels:
        if own == option:
            return split
    return None if option in known else Replicated()


@dataclass(frozen=True, eq=False)
class MergedOp:
    """Ops with one signature and the same groups around them, which are split alike.

    Args:
        op: what they compute and how it can be split.
        ops: their positions in the graph.
        inputs, outputs: what they read and write.
        variants: the ways of splitting them, the last of which is that every worker computes everything.
    """

    op: SplittableOp
    ops: tuple[int, ...]
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    variants: tuple[Variant, ...]


@dataclass(frozen=True, eq=False)
class GroupsAndOps:
    """Groups of tensors that are split alike, and the ops between them: what a search chooses for.

    Args:
        graph: the step.
        groups: what is split.
        sizes: bytes of every tensor that was made.
        label_bytes: per group and label, the bytes of its members that have the label.
        carried: per group, whether it may be stored as partial sums.
        merged: the ops.
        fetches: what the ops read, by who reads it.
        times: per group, how many groups it stands for, itself included.
    """

    graph: Graph
    groups: tuple[TensorGroup, ...]
    sizes: tuple[int, ...]
    label_bytes: tuple[dict[int, int], ...]
    carried: tuple[bool, ...]
    merged: tuple[MergedOp, ...]
    fetches: tuple[Fetch, ...]
    times: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class CoarseGraph(GroupsAndOps):
    """All groups and ops of a step.

    Args:
        graph, groups, sizes, label_bytes, carried, merged, fetches, times: as in `GroupsAndOps`.
        group_of: the group of every tensor of the graph; views are in the group of what they view.
        labels: per tensor, where the labels of its group are in it.
        known: per tensor, the labels of what it is a view of.
    """

    group_of: tuple[int, ...]
    labels: tuple[tuple[tuple[int, Split], ...], ...]
    known: tuple[frozenset[int], ...]


def coarsen(graph: Graph, ops: Sequence[SplittableOp] | None = None) -> CoarseGraph:
    """Group the tensors of a step and merge its ops.

    Args:
        graph: the step; it needs no program.
        ops: its ops with their strategies; found if not given.
    """
    with without_garbage_collection():
        return _coarse_graph(graph, splittable_ops(graph) if ops is None else ops)


def _coarse_graph(graph: Graph, ops: Sequence[SplittableOp]) -> CoarseGraph:
    found = atoms(graph, ops)
    sums = carried_sums(graph, ops)
    tied = TensorGroups(graph, found, sums)
    tie_storages(graph, tied)
    tie_alike(graph, ops, tied)
    tie_steps(graph, ops, tied)
    tie_sums(graph, ops, tied)
    groups = tied.groups()
    group_of = tied.numbers()
    itemsizes = {name: getattr(torch, name).itemsize for name in {tensor.dtype for tensor in graph.tensors}}
    sizes = tuple(prod(tensor.shape) * itemsizes[tensor.dtype] for tensor in graph.tensors)
    roots = [tied.root(tensor.id) for tensor in graph.tensors]
    slots = [
        Slot(group_of[t.id], tied.labels(t.id), frozenset(groups[group_of[t.id]].members[roots[t.id]].values()),
             t.shape, itemsizes[t.dtype])
        for t in graph.tensors
    ]  # fmt: skip
    merged = _merge(graph, ops, slots, found)
    fetched = fetches(graph, roots, group_of, [each.ops for each in merged])
    label_bytes = tuple(_label_bytes(group, sizes) for group in groups)
    carried = tuple(any(tensor in sums for tensor in group.members) for group in groups)
    labels, known = tuple(slot.labels for slot in slots), tuple(slot.known for slot in slots)
    return CoarseGraph(
        graph, groups, sizes, label_bytes, carried, merged, fetched, (1,) * len(groups), group_of, labels, known
    )


def _merge(graph: Graph, ops: Sequence[SplittableOp], slots: Sequence[Slot], found: Atoms) -> tuple[MergedOp, ...]:
    numbers: dict[Slot, int] = {}
    slot_of = [numbers.setdefault(slot, len(numbers)) for slot in slots]
    alike: dict[object, list[int]] = {}
    for op, splittable in zip(graph.ops, ops, strict=True):
        key = id(splittable), op.phase, tuple(slot_of[tensor] for tensor in (*op.inputs, *op.outputs))
        alike.setdefault(key, []).append(op.id)
    known: dict[object, tuple[Variant, ...]] = {}
    merged = []
    for members in alike.values():
        first, splittable = graph.ops[members[0]], ops[members[0]]
        tensors = (*first.inputs, *first.outputs)
        call = id(splittable), tuple(tuple(split for _, split in slots[tensor].labels) for tensor in tensors)
        if call not in known:
            known[call] = variants(splittable, tensors, found)
        inputs, outputs = (tuple(slots[tensor] for tensor in side) for side in (first.inputs, first.outputs))
        merged.append(MergedOp(splittable, tuple(members), inputs, outputs, known[call]))
    return tuple(merged)


def _label_bytes(group: TensorGroup, sizes: Sequence[int]) -> dict[int, int]:
    found = dict.fromkeys(group.sizes, 0)
    for tensor, labels in group.members.items():
        for label in labels.values():
            found[label] += sizes[tensor]
    return found
