"""Bounds for synthetic integers that may be used as indices.

An index out of range makes a kernel fail or, worse, write elsewhere; equal indices would be served from cache and look
too fast. So the bounds of known indexing ops are propagated backwards to their inputs, and integers that only other ops
read stay below the smallest size among the tensors of those ops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf, prod
from typing import Any

import torch

from planner.graph import Graph, Tensor
from planner.machine import operator
from planner.program import Call, Program, TensorRef

_INTEGERS = frozenset({"uint8", "int8", "int16", "int32", "int64"})


def index_bounds(graph: Graph, program: Program, ops: Iterable[int]) -> dict[int, int]:
    """For each integer storage that the ops read, an exclusive upper bound of its numbers.

    Args:
        graph, program: the step.
        ops: a segment of it, in order.
    """
    bounds: dict[int, float] = {}
    fallback: dict[int, float] = {}
    for op in reversed(list(ops)):
        created = [graph.tensors[t].storage for t in graph.ops[op].outputs if graph.tensors[t].dtype in _INTEGERS]
        propagated = min((bounds.get(storage, inf) for storage in created), default=inf)
        smallest = min(_sizes(graph, op), default=1)
        for tensor in graph.ops[op].inputs:
            info = graph.tensors[tensor]
            if info.dtype in _INTEGERS:
                bound = min(_indexed(graph, program.calls[op], operator(graph.ops[op]), tensor), propagated)
                bounds[info.storage] = min(bound, bounds.get(info.storage, inf))
                fallback[info.storage] = min(smallest, fallback.get(info.storage, inf))
    return {storage: max(int(fallback[storage] if bound == inf else bound), 1) for storage, bound in bounds.items()}


def pooled_positions(graph: Graph, program: Program, op: int, tensor: int) -> torch.Tensor | None:
    """Synthetic positions of the largest pixels, if an op reads a tensor as these; shape (elements,), otherwise None.

    As in real pooling, the position for each output pixel is near that pixel in the image, plane by plane.
    """
    name, call = operator(graph.ops[op]), program.calls[op]
    if "max_pool" not in name or "backward" not in name or call.args[-1] != TensorRef(tensor):
        return None
    indices, image = graph.tensors[tensor], _argument(call, 1, graph)
    planar = 2 if len(image.shape) >= 4 else 1
    outputs, pixels = prod(indices.shape[-planar:]), prod(image.shape[-planar:])
    plane = torch.arange(outputs) * pixels // max(outputs, 1)
    return plane.repeat(prod(indices.shape[:-planar]))


def _indexed(graph: Graph, call: Call, name: str, tensor: int) -> float:
    """The size of what a call indexes with a tensor, or infinity."""
    reference = TensorRef(tensor)
    if name in _INDEX_LIST_OPS:
        shape = _argument(call, 0, graph).shape
        return min((shape[position] for position, index in enumerate(call.args[1]) if index == reference), default=inf)
    known = _INDEX_ARGUMENTS.get(name.removesuffix("_"), ())
    return min((size(call, graph) for position, size in known if call.args[position] == reference), default=inf)


def _sizes(graph: Graph, op: int) -> list[int]:
    tensors = (*graph.ops[op].inputs, *graph.ops[op].outputs)
    return [size for tensor in tensors for size in graph.tensors[tensor].shape]


def _argument(call: Call, position: int, graph: Graph) -> Tensor:
    value = call.args[position]
    assert isinstance(value, TensorRef)
    return graph.tensors[value.tensor]


def _size_of_dimension(source: int, dimension: int) -> Callable[[Call, Graph], int]:
    """The size of argument `source` along the dimension that argument `dimension` names."""

    def size(call: Call, graph: Graph) -> int:
        shape = _argument(call, source, graph).shape
        return shape[call.args[dimension]] if shape else 1

    return size


def _classes(scores: int) -> Callable[[Call, Graph], int]:
    def size(call: Call, graph: Graph) -> int:
        shape = _argument(call, scores, graph).shape
        return shape[0] if len(shape) == 1 else shape[1]

    return size


def _rows(call: Call, graph: Graph) -> int:
    return _argument(call, 0, graph).shape[0]


def _number(call: Call, _graph: Graph) -> int:
    return int(call.args[2])


def _offsets(_call: Call, _graph: Graph) -> int:
    """The bound 1 for offsets, which must not decrease from 0 or a kernel writes elsewhere; all 0 satisfies that."""
    return 1


def _weights(call: Call, _graph: Graph) -> int:
    return int(call.args[5])


def _positions(call: Call, _graph: Graph) -> int:
    return prod(call.args[2])


#: Ops that take a list of indices, one per dimension, with None for dimensions that are not indexed.
_INDEX_LIST_OPS = frozenset({"index", "index_put", "index_put_", "_unsafe_index", "_unsafe_index_put"})

#: By op, the arguments that are indices, and the function for the bound of each.
_INDEX_ARGUMENTS: Mapping[str, Sequence[tuple[int, Callable[[Call, Graph], Any]]]] = {
    "embedding": [(1, _rows)],
    "embedding_dense_backward": [(1, _number)],
    "gather": [(2, _size_of_dimension(0, 1))],
    "scatter": [(2, _size_of_dimension(0, 1))],
    "scatter_add": [(2, _size_of_dimension(0, 1))],
    "scatter_reduce": [(2, _size_of_dimension(0, 1))],
    "index_select": [(2, _size_of_dimension(0, 1))],
    "index_add": [(2, _size_of_dimension(0, 1))],
    "index_copy": [(2, _size_of_dimension(0, 1))],
    "index_fill": [(2, _size_of_dimension(0, 1))],
    "nll_loss_forward": [(1, _classes(0))],
    "nll_loss_backward": [(2, _classes(1))],
    "nll_loss2d_forward": [(1, _classes(0))],
    "nll_loss2d_backward": [(2, _classes(1))],
    "max_unpool2d": [(1, _positions)],
    "_embedding_bag": [(1, _rows), (2, _offsets)],
    "_embedding_bag_forward_only": [(1, _rows), (2, _offsets)],
    "_embedding_bag_dense_backward": [(1, _weights), (2, _rows), (4, _weights)],
}
