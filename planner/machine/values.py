"""Values for the tensors that a rehearsal starts from."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from planner.capture.program import Program
from planner.graph import Graph
from planner.machine.indices import fill_indices
from planner.machine.stretches import Stretch

_BLOCK = 1 << 16


def fill(slab: torch.Tensor, stretch: Stretch, graph: Graph, program: Program) -> None:
    """Fill everything that was there before a stretch of a step.

    Constants get their values, whole numbers are right wherever they serve for indices, and other numbers are small
    enough to stay finite through a deep network, but not so small that they become subnormal, which is slow.

    Args:
        slab: shape (stretch.bytes,), uint8.
        stretch, graph, program: what is rehearsed.
    """
    readers: dict[int, list[tuple[int, int]]] = {}
    for op in stretch.ops:
        for tensor in graph.ops[op].inputs:
            storage = graph.tensors[tensor].storage
            if storage in stretch.given:
                readers.setdefault(storage, []).append((op, tensor))
    block = torch.empty(_BLOCK).uniform_(-0.1, 0.1)
    constants = {graph.tensors[tensor].storage: (tensor, value) for tensor, value in program.constants}
    for storage, uses in readers.items():
        if storage in constants:
            tensor, value = constants[storage]
            view(slab, stretch, graph, tensor).copy_(value)
        else:
            _fill(_whole(slab, stretch, graph, uses[0][1]), block, graph, program, uses)


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


def _fill(
    values: torch.Tensor, block: torch.Tensor, graph: Graph, program: Program, uses: Sequence[tuple[int, int]]
) -> None:
    if values.is_complex():
        values = torch.view_as_real(values).flatten()
    if values.is_floating_point():
        repeated = block.to(values.dtype)
        for start in range(0, values.numel(), _BLOCK):
            part = values[start : start + _BLOCK]
            part.copy_(repeated[: part.numel()])
    elif values.dtype is torch.bool:
        values.random_(0, 2)
    else:
        fill_indices(values, graph, program, uses)
