"""Op signatures, which are equal for ops of the same cost: operator, arguments, and the layout of every tensor."""

from __future__ import annotations

import torch

from planner.graph import Graph, Op

#: Addresses matter modulo this many bytes: kernels choose their code path by the alignment of their data.
ALIGNMENT = 64


def signature(graph: Graph, op: Op) -> str:
    """The op without its name: ops with the same signature do the same work on memory of the same layout.

    Relative offsets of tensors in one storage are included, to distinguish an in-place update from a copy.
    """
    tensors = [graph.tensors[tensor] for tensor in (*op.inputs, *op.outputs)]
    starts: dict[int, int] = {}
    for tensor in tensors:
        first = tensor.offset * itemsize(tensor.dtype)
        starts[tensor.storage] = min(first, starts.get(tensor.storage, first))
    numbers = {storage: number for number, storage in enumerate(starts)}
    described = []
    for tensor in tensors:
        offset = tensor.offset * itemsize(tensor.dtype) - starts[tensor.storage] // ALIGNMENT * ALIGNMENT
        described.append(
            f"{tensor.dtype}{list(tensor.shape)}/{list(tensor.strides)}@{numbers[tensor.storage]}+{offset}"
        )
    inputs, outputs = described[: len(op.inputs)], described[len(op.inputs) :]
    return f"{op.target}({op.attributes}) {', '.join(inputs)} -> {', '.join(outputs)}"


def itemsize(dtype: str) -> int:
    """Bytes of one element."""
    return int(getattr(torch, dtype).itemsize)
