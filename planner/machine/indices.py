"""Whole numbers that an op may take for indices.

An index outside its range stops a kernel or, worse, writes elsewhere; indices that are all alike would be served from
cache and look too fast. So every operator that is known to index says how far, and what only others read gets numbers
below the smallest size among their tensors, which are right whatever they index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import torch

from planner.capture.program import Call, Program, TensorRef
from planner.graph import Graph, Tensor
from planner.machine.families import operator

Layouts = Sequence[Tensor]


def fill_indices(values: torch.Tensor, graph: Graph, program: Program, uses: Sequence[tuple[int, int]]) -> None:
    """Fill an integer storage.

    Args:
        values: filled in place, shape (elements,).
        graph, program: the step.
        uses: (op, tensor) for every reading of the storage.
    """
    bounds = []
    for op, tensor in uses:
        name, call = operator(graph.ops[op]), program.calls[op]
        if "max_pool" in name and "backward" in name:
            _spread(values, graph.tensors[tensor], _argument(call, 1, graph.tensors))
            return
        if name in _KNOWN:
            bounds.append(_KNOWN[name](call, graph.tensors, tensor))
    if not bounds:
        bounds = [min(_sizes(graph, op), default=1) for op, _ in uses]
    values.random_(0, max(min(bounds), 1))


def _spread(values: torch.Tensor, indices: Tensor, image: Tensor) -> None:
    """Positions of the largest pixels: each output pixel's lies near its own place in the image, plane by plane."""
    if not values.numel():
        return
    planar = 2 if len(image.shape) >= 4 else 1
    outputs, pixels = prod(indices.shape[-planar:]), prod(image.shape[-planar:])
    # channels-last tensors hold the same numbers in another order, which makes no difference to the kernel's work
    plane = torch.arange(outputs) * pixels // max(outputs, 1)
    values.copy_(plane.repeat(-(-values.numel() // outputs))[: values.numel()])


def _sizes(graph: Graph, op: int) -> list[int]:
    tensors = (*graph.ops[op].inputs, *graph.ops[op].outputs)
    return [size for tensor in tensors for size in graph.tensors[tensor].shape]


def _argument(call: Call, place: int, layouts: Layouts) -> Tensor:
    value = call.args[place]
    assert isinstance(value, TensorRef)
    return layouts[value.tensor]


def _rows(call: Call, layouts: Layouts, _tensor: int) -> int:
    return _argument(call, 0, layouts).shape[0]


def _number(place: int) -> Callable[[Call, Layouts, int], int]:
    return lambda call, _layouts, _tensor: int(call.args[place])


def _along(source: int, dimension: int) -> Callable[[Call, Layouts, int], int]:
    """Size of argument `source` along the dimension that argument `dimension` names."""

    def size(call: Call, layouts: Layouts, _tensor: int) -> int:
        shape = _argument(call, source, layouts).shape
        return shape[call.args[dimension]] if shape else 1

    return size


def _classes(scores: int) -> Callable[[Call, Layouts, int], int]:
    def size(call: Call, layouts: Layouts, _tensor: int) -> int:
        shape = _argument(call, scores, layouts).shape
        return shape[0] if len(shape) == 1 else shape[1]

    return size


def _indexed(call: Call, layouts: Layouts, tensor: int) -> int:
    """`index` and its like take a list of indices, one per dimension, None for those taken whole."""
    shape = _argument(call, 0, layouts).shape
    indices: list[Any] = list(call.args[1])
    named = [shape[place] for place, index in enumerate(indices) if index == TensorRef(tensor)]
    return min(named, default=min(shape, default=1))


_KNOWN: Mapping[str, Callable[[Call, Layouts, int], int]] = {
    "embedding": _rows,
    "embedding_dense_backward": _number(2),
    "gather": _along(0, 1),
    "gather_backward": _along(1, 2),
    "scatter": _along(0, 1),
    "scatter_": _along(0, 1),
    "scatter_add": _along(0, 1),
    "scatter_add_": _along(0, 1),
    "index_select": _along(0, 1),
    "index_add": _along(0, 1),
    "index_add_": _along(0, 1),
    "index_copy": _along(0, 1),
    "index": _indexed,
    "index_put": _indexed,
    "index_put_": _indexed,
    "_unsafe_index": _indexed,
    "_unsafe_index_put": _indexed,
    "nll_loss_forward": _classes(0),
    "nll_loss_backward": _classes(1),
    "nll_loss2d_forward": _classes(0),
    "nll_loss2d_backward": _classes(1),
}
