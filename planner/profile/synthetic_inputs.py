"""Synthetic values for the inputs of a segment benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch

from planner.graph import Graph
from planner.profile.index_bounds import index_bounds, pooled_positions
from planner.profile.segments import Segment
from planner.program import Program

_BLOCK = 1 << 16


def fill(slab: torch.Tensor, segment: Segment, graph: Graph, program: Program, generator: torch.Generator) -> None:
    """Fill all storages that exist before a segment of a step.

    Constants get their values, integers are valid wherever they are used as indices, and other numbers are small enough
    to stay finite through a deep network, but not so small that they become subnormal, which is slow.

    Args:
        slab: shape (segment.bytes,), uint8.
        segment, graph, program: the segment, and its step.
        generator: the generator that other numbers are drawn from.
    """
    bounds = index_bounds(graph, program, segment.ops)
    block = torch.empty(_BLOCK, device=slab.device).uniform_(-0.1, 0.1, generator=generator)
    constants = {graph.tensors[tensor].storage: (tensor, value) for tensor, value in program.constants}
    for storage, op, tensor in _first_uses(segment, graph):
        if storage in constants:
            constant, value = constants[storage]
            view(slab, segment, graph, constant).copy_(value)
            continue
        values = _storage_view(slab, segment, graph, tensor)
        if values.is_complex():
            values = torch.view_as_real(values).flatten()
        if values.is_floating_point():
            _repeat(block.to(values.dtype), values)
        elif values.dtype is torch.bool:
            values.random_(0, 2, generator=generator)
        elif (positions := pooled_positions(graph, program, op, tensor)) is not None:
            values[: positions.numel()] = positions
        else:
            values.random_(0, bounds.get(storage, 1), generator=generator)


def clear_integers(slab: torch.Tensor, segment: Segment, graph: Graph) -> None:
    """Set all integers that exist before a segment to 0, an index that is valid almost everywhere."""
    for _, _, tensor in _first_uses(segment, graph):
        values = _storage_view(slab, segment, graph, tensor)
        if not values.is_floating_point() and not values.is_complex():
            values.zero_()


class Filling(NamedTuple):
    """Alternative values for tensors.

    Args:
        number: for floating-point tensors; None for identity matrices.
        integer: for integer tensors; None for distinct numbers.
    """

    number: float | None
    integer: int | None


#: Alternatives for calls that fail on the default values: probabilities and indices; decomposable matrices and pivots.
ALTERNATIVE_FILLINGS = (Filling(0.5, 0), Filling(None, 1))


def filled(like: torch.Tensor, filling: Filling) -> torch.Tensor:
    """A tensor with the layout of another and other values.

    Args:
        like: the tensor whose layout is used.
        filling: the values.
    """
    result = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=like.device)
    if result.is_floating_point() or result.is_complex():
        if filling.number is not None:
            return result.fill_(filling.number)
        result.zero_()
        if result.dim() > 1:
            result.diagonal(dim1=-2, dim2=-1).fill_(1)
    elif filling.integer is None and result.dtype is not torch.bool:
        result.copy_(torch.arange(result.numel()).reshape(result.shape))
    else:
        result.fill_(filling.integer or 0)
    return result


def _first_uses(segment: Segment, graph: Graph) -> Iterator[tuple[int, int, int]]:
    """Every storage that exists before the segment, the first op that uses it, and the tensor that this op uses."""
    seen: set[int] = set()
    for op in segment.ops:
        for tensor in (*graph.ops[op].inputs, *graph.ops[op].outputs):
            storage = graph.tensors[tensor].storage
            if storage in segment.live_in and storage not in seen:
                seen.add(storage)
                yield storage, op, tensor


def _repeat(block: torch.Tensor, values: torch.Tensor) -> None:
    for start in range(0, values.numel(), _BLOCK):
        part = values[start : start + _BLOCK]
        part.copy_(block[: part.numel()])


def view(slab: torch.Tensor, segment: Segment, graph: Graph, tensor: int) -> torch.Tensor:
    """A view of the slab at a tensor of the graph."""
    info = graph.tensors[tensor]
    dtype: torch.dtype = getattr(torch, info.dtype)
    start = segment.offsets[info.storage] // dtype.itemsize + info.offset
    return slab.view(dtype).as_strided(info.shape, info.strides, start)


def _storage_view(slab: torch.Tensor, segment: Segment, graph: Graph, tensor: int) -> torch.Tensor:
    """All of a tensor's storage, flat."""
    info = graph.tensors[tensor]
    dtype: torch.dtype = getattr(torch, info.dtype)
    start = segment.offsets[info.storage]
    size = graph.storages[info.storage].bytes // dtype.itemsize * dtype.itemsize
    return slab[start : start + size].view(dtype)
