"""What makes two ops cost the same: operator, arguments, and how every tensor lies in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from planner.graph import Graph, Op, Tensor

#: Addresses are kept modulo this many bytes: kernels choose their path by how their data are aligned.
ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor lies among the buffers of one call.

    Args:
        tensor: of the graph.
        buffer: number of its buffer; tensors of one storage share one.
        offset: elements from the buffer's start.
    """

    tensor: Tensor
    buffer: int
    offset: int


@dataclass(frozen=True)
class Signature:
    """An op stripped of its name: ops with the same `text` do the same work on memory laid out alike.

    Args:
        text: operator, arguments and layouts.
        places: of all its tensors, inputs first, by tensor id.
        buffer_bytes: sizes of the buffers that hold them.
    """

    text: str
    places: dict[int, Place]
    buffer_bytes: tuple[int, ...]


def signature(graph: Graph, op: Op) -> Signature:
    """The signature of an op."""
    tensors = [graph.tensors[tensor] for tensor in dict.fromkeys((*op.inputs, *op.outputs))]
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    for tensor in tensors:
        first, last = _extent(tensor)
        starts[tensor.storage] = min(first, starts.get(tensor.storage, first))
        ends[tensor.storage] = max(last, ends.get(tensor.storage, last))
    buffers = {storage: number for number, storage in enumerate(starts)}
    starts = {storage: start // ALIGNMENT * ALIGNMENT for storage, start in starts.items()}
    places = {}
    for tensor in tensors:
        offset = tensor.offset - starts[tensor.storage] // itemsize(tensor.dtype)
        places[tensor.id] = Place(tensor, buffers[tensor.storage], offset)
    inputs = _text([places[tensor] for tensor in op.inputs])
    outputs = _text([places[tensor] for tensor in op.outputs])
    return Signature(
        f"{op.target}({op.attributes}) {inputs} -> {outputs}",
        places,
        tuple(ends[storage] - starts[storage] for storage in buffers),
    )


def itemsize(dtype: str) -> int:
    """Bytes of one element."""
    return int(getattr(torch, dtype).itemsize)


def _extent(tensor: Tensor) -> tuple[int, int]:
    """First byte of a tensor in its storage, and the byte after its last."""
    size = itemsize(tensor.dtype)
    if 0 in tensor.shape:
        return tensor.offset * size, tensor.offset * size
    last = sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.strides, strict=True))
    return tensor.offset * size, (tensor.offset + last + 1) * size


def _text(places: Sequence[Place]) -> str:
    return ", ".join(
        f"{p.tensor.dtype}{list(p.tensor.shape)}/{list(p.tensor.strides)}@{p.buffer}+{p.offset}" for p in places
    )
