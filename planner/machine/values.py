"""Values for the tensors that a rehearsal starts from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

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


class Filling(NamedTuple):
    """What to put into tensors in the place of the values at hand.

    Args:
        number: for floating-point numbers; None for matrices that are the identity.
        integer: for whole numbers; None for numbers that all differ.
    """

    number: float | None
    integer: int | None


#: For calls that refuse the values at hand, in turn: probabilities and indices; what may be decomposed, and pivots.
OTHERS = (Filling(0.5, 0), Filling(None, 1))


def filled(like: torch.Tensor, filling: Filling) -> torch.Tensor:
    """A tensor laid out like another, of other values.

    Args:
        like: a tensor.
        filling: the values.
    """
    made = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype)
    if made.is_floating_point() or made.is_complex():
        if filling.number is not None:
            return made.fill_(filling.number)
        made.zero_()
        if made.dim() > 1:
            made.diagonal(dim1=-2, dim2=-1).fill_(1)
    elif filling.integer is None and made.dtype is not torch.bool:
        made.copy_(torch.arange(made.numel()).reshape(made.shape))
    else:
        made.fill_(filling.integer or 0)
    return made


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
