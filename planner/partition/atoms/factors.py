"""A view as a renaming: every dimension of it is a product of factors of the dimensions of the tensor it views."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any

from planner.graph import Graph, Tensor
from planner.partition.attributes import read_arguments
from planner.partition.tdl import Operand


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor of one dimension of a tensor: `index // inner % size`."""

    dimension: int
    size: int
    inner: int


#: The factors of a dimension, the outermost first; none for one that has a single index or repeats the same elements;
#: None for a dimension that is not made of factors.
Factors = tuple[Factor, ...] | None
_View = Callable[..., "list[Factors] | None"]


@dataclass(frozen=True, slots=True)
class ViewedTensor:
    """A tensor as a view of the one that was made.

    Args:
        root: the tensor that was made; itself for a tensor that is no view.
        layout: a number that it has in common only with tensors of its shape and dimensions.
        dimensions: the factors of every dimension in those of the root.
    """

    root: int
    layout: int
    dimensions: tuple[Factors, ...]


def viewed_tensors(graph: Graph) -> tuple[ViewedTensor, ...]:
    """Every tensor of a graph in terms of the one that it is a view of."""
    found: dict[int, ViewedTensor] = {}
    layouts: dict[object, tuple[int, tuple[Factors, ...]]] = {}
    for tensor in graph.tensors:
        chain = [tensor]
        while chain[-1].id not in found and chain[-1].base >= 0:
            chain.append(graph.tensors[chain[-1].base])
        for here in reversed(chain):
            if here.id not in found:
                base = found.get(here.base)
                key = _key(here, graph, base)
                if key not in layouts:
                    dimensions = _whole(here) if base is None else _view(here, graph, base.dimensions)
                    layouts[key] = len(layouts), dimensions
                found[here.id] = ViewedTensor(here.id if base is None else base.root, *layouts[key])
    return tuple(found[tensor.id] for tensor in graph.tensors)


def _key(tensor: Tensor, graph: Graph, base: ViewedTensor | None) -> object:
    """What the dimensions of a tensor follow from."""
    if base is None:
        return tensor.shape
    return base.layout, graph.tensors[tensor.base].shape, tensor.view, tensor.attributes, tensor.shape


def inner_part(factors: Sequence[Factor], size: int) -> tuple[tuple[Factor, ...], tuple[Factor, ...]] | None:
    """Factors as those outside of the innermost `size` indices and those inside; None if `size` cuts unevenly."""
    rest, inside = list(factors), []
    while size > 1:
        if not rest:
            return None
        factor = rest.pop()
        if size % factor.size == 0:
            inside.append(factor)
            size //= factor.size
        elif factor.size % size == 0:
            rest.append(Factor(factor.dimension, factor.size // size, factor.inner * size))
            inside.append(Factor(factor.dimension, size, factor.inner))
            size = 1
        else:
            return None
    return tuple(rest), tuple(reversed(inside))


def _whole(tensor: Tensor) -> tuple[Factors, ...]:
    return tuple((Factor(d, size, 1),) if size > 1 else () for d, size in enumerate(tensor.shape))


def _view(tensor: Tensor, graph: Graph, base: tuple[Factors, ...]) -> tuple[Factors, ...]:
    shape = graph.tensors[tensor.base].shape
    args, kwargs = read_arguments(tensor.attributes, [Operand("base", shape)], [])
    known = _VIEWS.get(tensor.view)
    dimensions = None
    if known is not None:
        dimensions = known(list(base), shape, tensor.shape, *args[1:], **kwargs)
    if dimensions is None or len(dimensions) != len(tensor.shape):
        dimensions = [() if size == 1 else None for size in tensor.shape]
    return tuple(dimensions)


def _reshaped(
    dimensions: list[Factors], shape: tuple[int, ...], target: tuple[int, ...], *_: Any
) -> list[Factors] | None:
    rest: tuple[Factor, ...] = ()
    for factors, size in zip(dimensions, shape, strict=True):
        if factors is None or (size > 1 and not factors):
            return None
        rest += factors
    found: list[Factors] = []
    for size in reversed(target):
        split = inner_part(rest, size)
        if split is None:
            return None
        rest, inside = split
        found.append(inside)
    return found[::-1]


def _exchanged(
    dimensions: list[Factors], _shape: tuple[int, ...], _target: tuple[int, ...], first: int, second: int
) -> list[Factors]:
    dimensions[first], dimensions[second] = dimensions[second], dimensions[first]
    return dimensions


def _turned(dimensions: list[Factors], *_: Any) -> list[Factors]:
    return dimensions[::-1]


def _permuted(
    dimensions: list[Factors], _shape: tuple[int, ...], _target: tuple[int, ...], order: Sequence[int]
) -> list[Factors]:
    return [dimensions[place] for place in order]


def _unsqueezed(dimensions: list[Factors], _shape: tuple[int, ...], target: tuple[int, ...], dim: int) -> list[Factors]:
    dimensions.insert(dim % len(target), ())
    return dimensions


def _squeezed(
    dimensions: list[Factors], shape: tuple[int, ...], _target: tuple[int, ...], dim: int | Sequence[int] | None = None
) -> list[Factors]:
    named = range(len(shape)) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = {d % len(shape) for d in named if shape[d] == 1}
    return [factors for place, factors in enumerate(dimensions) if place not in gone]


def _expanded(
    dimensions: list[Factors], shape: tuple[int, ...], target: tuple[int, ...], *_: Any, **__: Any
) -> list[Factors]:
    return [()] * (len(target) - len(shape)) + dimensions


def _selected(
    dimensions: list[Factors], shape: tuple[int, ...], _target: tuple[int, ...], dim: int = 0, *_: Any
) -> list[Factors]:
    del dimensions[dim % len(shape)]
    return dimensions


def _sliced(
    dimensions: list[Factors], shape: tuple[int, ...], target: tuple[int, ...], dim: int = 0, start: int | None = 0,
    _end: int | None = None, step: int = 1,
) -> list[Factors]:  # fmt: skip
    dim %= len(shape)
    first = min(max((start or 0) + (shape[dim] if (start or 0) < 0 else 0), 0), shape[dim])
    dimensions[dim] = _equal_piece(dimensions[dim], shape[dim], target[dim]) if step == 1 else None
    if first % max(target[dim], 1):
        dimensions[dim] = None
    return dimensions


def _pieces(
    dimensions: list[Factors], shape: tuple[int, ...], target: tuple[int, ...], size: int, dim: int = 0
) -> list[Factors]:
    dim %= len(shape)
    dimensions[dim] = _equal_piece(dimensions[dim], shape[dim], target[dim]) if target[dim] == size else None
    return dimensions


def _equal_piece(factors: Factors, whole: int, piece: int) -> Factors:
    """The factors of one of several equal pieces of a dimension."""
    if factors is None or piece == 0 or whole % piece:
        return None
    if prod(factor.size for factor in factors) != whole:
        return ()  # the same elements again and again
    split = inner_part(factors, piece)
    return None if split is None else split[1]


def _same(dimensions: list[Factors], *_: Any) -> list[Factors]:
    return dimensions


_VIEWS: Mapping[str, _View] = MappingProxyType(
    {
        "aten.view.default": _reshaped, "aten._unsafe_view.default": _reshaped, "aten.reshape.default": _reshaped,
        "aten.t.default": _turned, "aten.transpose.int": _exchanged, "aten.permute.default": _permuted,
        "aten.unsqueeze.default": _unsqueezed, "aten.squeeze.dim": _squeezed, "aten.squeeze.dims": _squeezed,
        "aten.squeeze.default": _squeezed, "aten.expand.default": _expanded, "aten.select.int": _selected,
        "aten.unbind.int": _selected, "aten.slice.Tensor": _sliced, "aten.split.Tensor": _pieces,
        "aten.alias.default": _same, "aten.detach.default": _same,
    }
)  # fmt: skip
