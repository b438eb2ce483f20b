"""Atoms: the common refinement of all dimensions that views and ops of a graph relate.

A dimension of 2048 that is viewed as four gates of 512 has the atoms 4 and 512, and so has every dimension that an op
gives the same index: the rows of the weight, the bias. A split picks an atom, and views only rename it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from planner.graph import Graph
from planner.partition.atoms.factors import Factor, ViewedTensor, inner_part, viewed_tensors
from planner.partition.op_strategies import SplittableOp
from planner.partition.strategy import Replicated, Split


@dataclass(frozen=True)
class Atoms:
    """The atoms of a graph.

    Args:
        tensors: every tensor in terms of the one that was made.
        shapes: the shape of every tensor.
        cuts: by tensor that was made and dimension, the sizes of inner parts at which it is cut into atoms: each
            divides the next, from 1 to the whole dimension.
    """

    tensors: tuple[ViewedTensor, ...]
    shapes: tuple[tuple[int, ...], ...]
    cuts: dict[tuple[int, int], list[int]]

    def splits(self, tensor: int, dimension: int) -> tuple[Split, ...]:
        """The ways to cut a dimension of a tensor, one per atom, the outermost first."""
        size = self.shapes[tensor][dimension]
        borders = self.borders(tensor, Split(dimension, 1, size, 1))
        if borders is None:
            return (Split(dimension, 1, size, 1),) if size > 1 else ()
        pairs = list(pairwise(borders))
        return tuple(Split(dimension, size // outer, outer // inner, inner) for inner, outer in reversed(pairs))

    def to_root(self, tensor: int, split: Split) -> Split | Replicated | None:
        """The same split of the tensor that was made, of which `tensor` is a view.

        Returns:
            `Replicated` where a view repeats the same elements along the dimension, so that every worker needs them
            all; None if no split of the tensor that was made is this one.
        """
        factors = self.factors(tensor, split)
        if factors is None:
            return None
        if not factors:
            return Replicated()
        if len(factors) > 1:
            return None
        (factor,) = factors
        size = self.shapes[self.tensors[tensor].root][factor.dimension]
        return Split(factor.dimension, size // factor.size // factor.inner, factor.size, factor.inner)

    def factors(self, tensor: int, split: Split) -> tuple[Factor, ...] | None:
        """The factors of the part of a dimension that a split cuts; None if it is not made of factors."""
        factors = self.tensors[tensor].dimensions[split.dimension]
        if factors is None:
            return None
        if not factors:
            return ()
        inner = inner_part(factors, split.inner)
        middle = None if inner is None else inner_part(inner[0], split.size)
        return None if middle is None else middle[1]

    def borders(self, tensor: int, split: Split) -> list[int] | None:
        """The sizes of inner parts at which what a split cuts is cut into atoms, from 1 to all of it."""
        factors = self.factors(tensor, split)
        if not factors:
            return None
        borders, inside = [1], 1
        for factor in reversed(factors):
            ends = self.cuts[self.tensors[tensor].root, factor.dimension]
            last = factor.inner * factor.size
            borders += [inside * cut // factor.inner for cut in ends if factor.inner < cut < last]
            inside *= factor.size
            borders.append(inside)
        return borders

    def cut(self, tensor: int, split: Split, borders: Iterable[int]) -> set[tuple[int, int]]:
        """Cut what a split cuts at some sizes of inner parts; returns the dimensions that have new cuts."""
        changed = set()
        factors = self.factors(tensor, split) or ()
        for border in borders:
            inside = 1
            for factor in reversed(factors):
                if inside < border < inside * factor.size and border % inside == 0:
                    key = self.tensors[tensor].root, factor.dimension
                    if _add(self.cuts[key], factor.inner * (border // inside)):
                        changed.add(key)
                inside *= factor.size
        return changed


def atoms(graph: Graph, ops: Sequence[SplittableOp]) -> Atoms:
    """Find the atoms of a graph.

    Args:
        graph: the step.
        ops: its ops with their strategies, from `splittable_ops`.
    """
    shapes = tuple(tensor.shape for tensor in graph.tensors)
    tensors = viewed_tensors(graph)
    cuts = {
        (tensor.id, dimension): sorted({1, size})
        for tensor in graph.tensors
        if tensor.base < 0
        for dimension, size in enumerate(tensor.shape)
    }
    found = Atoms(tensors, shapes, cuts)
    for tensor in tensors:
        for factors in tensor.dimensions:
            for factor in factors or ():
                for border in (factor.inner, factor.inner * factor.size):
                    _add(cuts[tensor.root, factor.dimension], border)
    related = _related(graph, ops)
    for group in related:
        for tensor_id, split in group:
            whole = Split(split.dimension, 1, shapes[tensor_id][split.dimension], 1)
            found.cut(tensor_id, whole, (split.inner, split.inner * split.size))
    waiting = list(range(len(related)))
    by_dimension: dict[tuple[int, int], list[int]] = {}
    for number, group in enumerate(related):
        for tensor_id, split in group:
            for factor in found.factors(tensor_id, split) or ():
                by_dimension.setdefault((tensors[tensor_id].root, factor.dimension), []).append(number)
    queued = set(waiting)
    while waiting:
        number = waiting.pop()
        queued.discard(number)
        borders = {b for tensor_id, split in related[number] for b in found.borders(tensor_id, split) or ()}
        for tensor_id, split in related[number]:
            for key in found.cut(tensor_id, split, sorted(borders)):
                fresh = [other for other in by_dimension.get(key, ()) if other not in queued]
                waiting += fresh
                queued.update(fresh)
    return found


def _related(graph: Graph, ops: Sequence[SplittableOp]) -> list[list[tuple[int, Split]]]:
    """Per op and axis that may be cut by factors, the tensors that have it and where."""
    found = []
    for op, splittable in zip(graph.ops, ops, strict=True):
        for strategy in splittable.strategies:
            if strategy.axis is None or not strategy.strided:
                continue
            states = [*strategy.inputs, *splittable.output_states(strategy)]
            group = [
                (tensor, state)
                for tensor, state in zip((*op.inputs, *op.outputs), states, strict=True)
                if isinstance(state, Split)
            ]
            if len(group) > 1:
                found.append(group)
    return found


def _add(cuts: list[int], border: int) -> bool:
    """Add a cut if it is new and fits between the others, which each divide the next."""
    if border in cuts:
        return False
    place = next((number for number, cut in enumerate(cuts) if cut > border), len(cuts))
    if place in (0, len(cuts)) or border % cuts[place - 1] or cuts[place] % border:
        return False
    cuts.insert(place, border)
    return True
