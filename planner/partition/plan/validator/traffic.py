"""Bytes per level, counted tensor by tensor, and whether every op can have what it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from weakref import WeakKeyDictionary

import torch

from planner.graph import Graph, Op, Tensor
from planner.partition.op_strategies import SplittableOp
from planner.partition.plan.partition_plan import Division, PartitionPlan
from planner.partition.plan.validator.layouts import contents, split_of_root
from planner.partition.plan.validator.shares import OpShare, share_of
from planner.partition.plan.validator.tensors import check_divisions, roots
from planner.partition.plan.validator.units import converted, fetched, inner_copies, outer_copies
from planner.partition.strategy import Partial, Split, State, Unread

_Levels = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _KnownOfGraph:
    """What was found out about a graph's ops that is the same for every plan.

    Args:
        shares: by op, division and number of workers.
        halos: bytes by share, input and how that is spread.
        below: how a split of a view is seen from its root.
    """

    shares: dict[tuple[SplittableOp, Division, int], OpShare] = field(default_factory=dict)
    halos: dict[tuple[OpShare, int, State | None], int] = field(default_factory=dict)
    below: dict[object, object] = field(default_factory=dict)


_KNOWN: WeakKeyDictionary[Graph, _KnownOfGraph] = WeakKeyDictionary()


class Traffic:
    """Follows a step op by op and adds up what workers receive.

    Args:
        plan: a plan whose fields are right.
        graph: the graph that it is for.
        ops: the descriptions of its ops.
    """

    def __init__(self, plan: PartitionPlan, graph: Graph, ops: Sequence[SplittableOp]) -> None:
        """Begin with nothing known."""
        self.plan, self.graph = plan, graph
        self.problems: list[str] = []
        self.stored: list[_Levels] = []
        self._ops = ops
        self._roots = roots(graph)
        known = _KNOWN.setdefault(graph, _KnownOfGraph())
        self._shares, self._halos, self._below = known.shares, known.halos, known.below
        self._allowed: dict[tuple[Division, ...], str] = {}
        self._fetches: dict[object, _Levels] = {}
        self._moved: dict[object, _Levels] = {}

    def count(self) -> tuple[float, ...]:
        """Bytes per level; what cannot be is added to `problems`."""
        for op, splittable in zip(self.graph.ops, self._ops, strict=True):
            self._follow(op, splittable)
        rows = [*self.stored, *self._fetches.values()]
        return tuple(sum(row[level] for row in rows) for level in range(len(self.plan.mesh)))

    def _follow(self, op: Op, splittable: SplittableOp) -> None:
        divisions, mesh = self.plan.ops[op.id], self.plan.mesh
        if divisions not in self._allowed:
            self._allowed[divisions] = check_divisions(mesh, divisions)
        if problem := self._allowed[divisions]:
            self.problems.append(f"op {op.name} cannot be divided so: {problem}")
            return
        shares = []
        for level, (division, workers) in enumerate(zip(divisions, mesh, strict=True)):
            key = splittable, division, workers
            if key not in self._shares:
                self._shares[key] = share_of(splittable, division, workers)
            shares.append(self._shares[key])
            if shares[-1].problem:
                self.problems.append(f"op {op.name} at level {level} {shares[-1].problem}")
        if any(share.problem for share in shares):
            return
        for place, tensor in enumerate(op.inputs):
            wants = tuple(share.wants[place] for share in shares)
            if self._is_served(op, tensor, wants):
                self._fetch(op, splittable, place, wants, shares)
        for place, made in enumerate(op.outputs):
            gives = tuple(share.gives[place] for share in shares)
            self.stored.append(self._store(self.graph.tensors[made], gives))
        self._stages(splittable, shares)

    def _is_served(self, op: Op, tensor: int, wants: tuple[State, ...]) -> bool:
        served = True
        for level, (have, want) in enumerate(zip(self.plan.tensors[tensor], wants, strict=True)):
            if isinstance(have, Partial) and not isinstance(want, Partial | Unread):
                name = self.graph.tensors[tensor].name
                self.problems.append(f"op {op.name} at level {level} needs {name}, which is stored as partial sums")
                served = False
        return served and not any(isinstance(want, Unread) for want in wants)

    def _fetch(
        self, op: Op, splittable: SplittableOp, place: int, wants: tuple[State, ...], shares: Sequence[OpShare]
    ) -> None:
        tensor = self.graph.tensors[op.inputs[place]]
        haves, mesh = self.plan.tensors[tensor.id], self.plan.mesh
        root = self._roots[tensor.id]
        names = tuple(
            (id(splittable), place, self.plan.ops[op.id][level]) if isinstance(want, Split) and want.halo
            else self._in_root(tensor, root, want)
            for level, want in enumerate(wants)
        )  # fmt: skip
        key = op.phase, root, contents(tensor), names
        known = id(splittable), place, self.plan.ops[op.id], tensor.shape, tensor.dtype, haves
        if known not in self._moved:
            units = []
            for level, (have, want, workers) in enumerate(zip(haves, wants, mesh, strict=True)):
                if isinstance(want, Split) and want.halo:
                    parts = self._earlier_parts(op.id, level)
                    units.append(self._with_halo(splittable, place, tensor.shape, have, want, shares[level], parts))
                else:
                    units.append(converted(tensor.shape, have, want, workers))
            self._moved[known] = self._levels(units, haves, wants, tensor)
        found = self._moved[known]
        before = self._fetches.get(key)
        self._fetches[key] = found if before is None or sum(found) < sum(before) else before

    def _with_halo(
        self, splittable: SplittableOp, place: int, shape: tuple[int, ...], have: State | None, want: Split,
        share: OpShare, parts: int,
    ) -> int:  # fmt: skip
        assert share.boxes is not None
        boxes = share.boxes[place]
        total = 0
        own = Split(want.dimension, want.outer, want.size, want.inner)
        for state, times in ((have, 1), (own, parts - 1 if isinstance(have, Split) else 0)):
            if times:
                key = share, place, state
                if key not in self._halos:
                    self._halos[key] = fetched(shape, state, boxes)
                total += times * self._halos[key]
        return total

    def _earlier_parts(self, op: int, level: int) -> int:
        """Into how many parts outer levels have cut what a level divides; each part has as wide a halo."""
        divisions, mesh = self.plan.ops[op], self.plan.mesh
        return prod(mesh[outer] for outer in range(level) if divisions[outer] == divisions[level])

    def _in_root(self, tensor: Tensor, root: int, want: State) -> object:
        """A wanted state as a state of the tensor that was made."""
        if not isinstance(want, Split):
            return want
        if tensor.id == root:
            return want
        whole = self.graph.tensors[root]
        key = tensor.shape, tensor.strides, tensor.offset - whole.offset, whole.shape, whole.strides, want
        if key not in self._below:
            below = split_of_root(tensor, want, whole)
            self._below[key] = below or (tensor.shape, tensor.strides, want)
        return self._below[key]

    def _store(self, tensor: Tensor, gives: tuple[State, ...]) -> _Levels:
        states = self.plan.tensors[tensor.id]
        key = tensor.shape, tensor.dtype, gives, states
        if key not in self._moved:
            pairs = zip(gives, states, self.plan.mesh, strict=True)
            units = [converted(tensor.shape, give, state, workers) for give, state, workers in pairs]
            self._moved[key] = self._levels(units, gives, states, tensor)
        return self._moved[key]

    def _levels(
        self, units: Sequence[int], haves: Sequence[State | None], wants: Sequence[State | None], tensor: Tensor
    ) -> _Levels:
        size = int(getattr(torch, tensor.dtype).itemsize)
        triples = list(zip(haves, wants, self.plan.mesh, strict=True))
        return tuple(
            unit * size
            * prod(outer_copies(*triple) for triple in triples[:level])
            * prod(inner_copies(*triple) for triple in triples[level + 1 :])
            for level, unit in enumerate(units)
        )  # fmt: skip

    def _stages(self, splittable: SplittableOp, shares: Sequence[OpShare]) -> None:
        if not any(share.reduced for share in shares):
            return
        mesh = self.plan.mesh
        size = 8 if any(operand.dtype == "float64" for operand in splittable.description.inputs) else 4
        row = []
        for level, share in enumerate(shares):
            moved = 0
            for name, values in share.reduced:
                whole = prod(k for k, outer in zip(mesh, shares[:level], strict=False) if name not in outer.cut_stages)
                moved += 2 * (mesh[level] - 1) * values * size * whole
            row.append(moved)
        self.stored.append(tuple(row))
