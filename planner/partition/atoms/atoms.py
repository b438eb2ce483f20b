"""Atoms: the common refinement of all dimensions that views and ops of a graph relate.

A dimension of 2048 that is viewed as four gates of 512 has the atoms 4 and 512, and so has every dimension that an op
gives the same index: the rows of the weight, the bias. A split picks an atom, and views only rename it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from planner.graph import Graph
from planner.partition.atoms.factors import Factor, ViewedTensor, inner_part, viewed_tensors
from planner.partition.op_strategies import SplittableOp
from planner.partition.strategy import Replicated, Split

#: A tensor that was made and one of its dimensions.
Dimension = tuple[int, int]
#: A tensor, a part of a dimension that an op gives some index, and the factors of that part.
Related = tuple[int, Split, tuple[tuple[Dimension, Factor], ...]]


@dataclass(frozen=True)
class Atoms:
    """The atoms of a graph.

    Args:
        tensors: every tensor in terms of the one that was made.
        shapes: the shape of every tensor.
        cuts: by tensor that was made and dimension, the sizes of inner parts at which it is cut into atoms: each
            divides the next, from 1 to the whole dimension. Dimensions that ops give the same index share a list.
    """

    tensors: tuple[ViewedTensor, ...]
    shapes: tuple[tuple[int, ...], ...]
    cuts: dict[Dimension, list[int]]

    @cached_property
    def cut_alike(self) -> dict[int, int]:
        """By tensor that was made, a number that it has in common only with tensors of its shape and atoms."""
        numbers: dict[object, int] = {}
        found = {}
        for tensor in {tensor.root for tensor in self.tensors}:
            shape = self.shapes[tensor]
            key = shape, tuple(tuple(self.cuts[tensor, dimension]) for dimension in range(len(shape)))
            found[tensor] = numbers.setdefault(key, len(numbers))
        return found

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
    found = Atoms(viewed_tensors(graph), tuple(tensor.shape for tensor in graph.tensors), {})
    related = _related(found, graph, ops)
    classes = _equal_dimensions(graph, found, related)
    _cut_at_views(found, graph)
    for each in related:
        for tensor, split, _ in each:
            if split.outer > 1 or split.inner > 1:
                whole = Split(split.dimension, 1, found.shapes[tensor][split.dimension], 1)
                found.cut(tensor, whole, (split.inner, split.inner * split.size))
    _spread(found, _distinct(related, classes), classes)
    return found


def _related(found: Atoms, graph: Graph, ops: Sequence[SplittableOp]) -> list[list[Related]]:
    """Per op and axis that may be cut by factors, the tensors that have it and where."""
    known: dict[int, list[list[tuple[int, Split]]]] = {}
    factors: dict[tuple[int, int], tuple[Factor, ...]] = {}
    related = []
    for op, splittable in zip(graph.ops, ops, strict=True):
        if id(splittable) not in known:
            known[id(splittable)] = _strided(splittable)
        tensors = (*op.inputs, *op.outputs)
        for axis in known[id(splittable)]:
            each: list[Related] = []
            for place, split in axis:
                viewed = found.tensors[tensors[place]]
                key = viewed.layout, id(split)  # which `known` keeps alive
                if key not in factors:
                    factors[key] = found.factors(tensors[place], split) or ()
                placed = tuple([((viewed.root, factor.dimension), factor) for factor in factors[key]])
                each.append((tensors[place], split, placed))
            related.append(each)
    return related


def _strided(splittable: SplittableOp) -> list[list[tuple[int, Split]]]:
    """Per axis of an op that may be cut by factors, which of its inputs and then outputs have it, and where."""
    found = []
    for strategy in splittable.strategies:
        if strategy.axis is not None and strategy.strided:
            states = (*strategy.inputs, *splittable.output_states(strategy))
            axis = [(place, state) for place, state in enumerate(states) if isinstance(state, Split)]
            if len(axis) > 1:
                found.append(axis)
    return found


def _equal_dimensions(graph: Graph, found: Atoms, related: Sequence[Sequence[Related]]) -> dict[Dimension, Dimension]:
    """Let dimensions that ops give the same index share their cuts; returns by dimension one that stands for all."""
    same: dict[Dimension, Dimension] = {}

    def stands_for(key: Dimension) -> Dimension:
        while (above := same.get(key, key)) != key:
            same[key] = same.get(above, above)
            key = above
        return key

    for each in related:
        whole = [
            placed[0][0]
            for _, _, placed in each
            if len(placed) == 1 and placed[0][1].size == found.shapes[placed[0][0][0]][placed[0][0][1]]
        ]
        for key in whole[1:]:
            same[stands_for(key)] = stands_for(whole[0])
    for tensor in graph.tensors:
        if tensor.base < 0:
            for dimension, size in enumerate(tensor.shape):
                key = stands_for((tensor.id, dimension))
                found.cuts[tensor.id, dimension] = found.cuts.setdefault(key, sorted({1, size}))
                same[tensor.id, dimension] = key
    return same


def _cut_at_views(found: Atoms, graph: Graph) -> None:
    seen = set()
    for tensor in graph.tensors:
        viewed = found.tensors[tensor.id]
        cuts = [found.cuts[viewed.root, dimension] for dimension in range(len(found.shapes[viewed.root]))]
        key = viewed.layout, tuple(map(id, cuts))
        if tensor.base >= 0 and key not in seen:
            seen.add(key)
            for factors in viewed.dimensions:
                for factor in factors or ():
                    _add(cuts[factor.dimension], factor.inner)
                    _add(cuts[factor.dimension], factor.inner * factor.size)


def _distinct(related: Sequence[Sequence[Related]], classes: Mapping[Dimension, Dimension]) -> list[Sequence[Related]]:
    """What is related in different ways, once each."""
    distinct: dict[object, Sequence[Related]] = {}
    for each in related:
        members = {
            tuple((classes[key], factor.size, factor.inner) for key, factor in placed): (tensor, split, placed)
            for tensor, split, placed in each
            if placed
        }
        if len(members) > 1:
            distinct.setdefault(frozenset(members), list(members.values()))
    return list(distinct.values())


def _spread(found: Atoms, related: Sequence[Sequence[Related]], classes: Mapping[Dimension, Dimension]) -> None:
    """Cut everywhere what is cut anywhere."""
    by_dimension: dict[Dimension, list[int]] = {}
    for number, each in enumerate(related):
        for _, _, placed in each:
            for key, _ in placed:
                by_dimension.setdefault(classes[key], []).append(number)
    waiting = list(range(len(related)))
    queued = set(waiting)
    while waiting:
        number = waiting.pop()
        queued.discard(number)
        borders = {border for tensor, split, _ in related[number] for border in found.borders(tensor, split) or ()}
        for tensor, split, _ in related[number]:
            for key in found.cut(tensor, split, sorted(borders)):
                fresh = [other for other in by_dimension.get(classes[key], ()) if other not in queued]
                waiting += fresh
                queued.update(fresh)


def _add(cuts: list[int], border: int) -> bool:
    """Add a cut if it is new and fits between the others, which each divide the next."""
    if border in cuts:
        return False
    place = next((number for number, cut in enumerate(cuts) if cut > border), len(cuts))
    if place in (0, len(cuts)) or border % cuts[place - 1] or cuts[place] % border:
        return False
    cuts.insert(place, border)
    return True
