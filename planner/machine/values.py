"""Values for the tensors that a rehearsal starts from."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from planner.capture.program import Program
from planner.graph import Graph
from planner.machine.indices import index_bounds, pooled_positions
from planner.machine.stretches import Stretch

_BLOCK = 1 << 16


def fill(slab: torch.Tensor, stretch: Stretch, graph: Graph, program: Program, generator: torch.Generator) -> None:
    """Fill everything that was there before a stretch of a step.

    Constants get their values, whole numbers are right wherever they serve for indices, and other numbers are small
    enough to stay finite through a deep network, but not so small that they become subnormal, which is slow.

    Args:
        slab: shape (stretch.bytes,), uint8.
        stretch, graph, program: what is rehearsed.
        generator: what other numbers are drawn from.
    """
    bounds = index_bounds(graph, program, stretch.ops)
    block = torch.empty(_BLOCK).uniform_(-0.1, 0.1, generator=generator)
    constants = {graph.tensors[tensor].storage: (tensor, value) for tensor, value in program.constants}
    for storage, op, tensor in _first_uses(stretch, graph):
        if storage in constants:
            place, value = constants[storage]
            view(slab, stretch, graph, place).copy_(value)
            continue
        values = _whole(slab, stretch, graph, tensor)
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


def clear_integers(slab: torch.Tensor, stretch: Stretch, graph: Graph) -> None:
    """Set all whole numbers that were there before a stretch to 0, the index that is right almost everywhere."""
    for _, _, tensor in _first_uses(stretch, graph):
        values = _whole(slab, stretch, graph, tensor)
        if not values.is_floating_point() and not values.is_complex():
            values.zero_()


def _first_uses(stretch: Stretch, graph: Graph) -> Iterator[tuple[int, int, int]]:
    """Every storage that was there before the stretch, the first op to use it, and through which tensor."""
    seen: set[int] = set()
    for op in stretch.ops:
        for tensor in (*graph.ops[op].inputs, *graph.ops[op].outputs):
            storage = graph.tensors[tensor].storage
            if storage in stretch.given and storage not in seen:
                seen.add(storage)
                yield storage, op, tensor


def _repeat(block: torch.Tensor, values: torch.Tensor) -> None:
    for start in range(0, values.numel(), _BLOCK):
        part = values[start : start + _BLOCK]
        part.copy_(block[: part.numel()])


def view(slab: torch.Tensor, stretch: Stretch, graph: Graph, tensor: int) -> torch.Tensor:
    """A tensor of the graph where it lies in the slab."""
    facts = graph.tensors[tensor]
    dtype: torch.dtype = getattr(torch, facts.dtype)
    start = stretch.offsets[facts.storage] // dtype.itemsize + facts.offset
    return slab.view(dtype).as_strided(facts.shape, facts.strides, start)


def _whole(slab: torch.Tensor, stretch: Stretch, graph: Graph, tensor: int) -> torch.Tensor:
    """All of a tensor's storage, flat."""
    facts = graph.tensors[tensor]
    dtype: torch.dtype = getattr(torch, facts.dtype)
    start = stretch.offsets[facts.storage]
    size = graph.storages[facts.storage].bytes // dtype.itemsize * dtype.itemsize
    return slab[start : start + size].view(dtype)
