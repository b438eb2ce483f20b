"""Real tensors to measure an op on: its layouts, filled with values that its kernel accepts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from planner.capture.kernels import Bound, bind
from planner.capture.program import Call, ScalarRef, TensorRef
from planner.graph import Op, Tensor
from planner.machine.indices import fill_indices
from planner.machine.signatures import Signature

_INTEGERS = frozenset({torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64})


def sample(op: Op, call: Call, signature: Signature, numbers: Mapping[str, float]) -> Bound:
    """The call of an op on tensors of its own, ready to run again and again.

    Args:
        op: of the graph.
        call: how it is executed.
        signature: its layouts.
        numbers: the values behind `ScalarRef` names.
    """
    buffers = [torch.empty(size, dtype=torch.uint8) for size in signature.buffer_bytes]
    layouts = {tensor: place.tensor for tensor, place in signature.places.items()}
    filled: set[int] = set()
    for tensor in op.inputs:
        place = signature.places[tensor]
        if place.buffer not in filled:
            filled.add(place.buffer)
            values = _whole(buffers[place.buffer], place.tensor)
            if values.dtype in _INTEGERS:
                fill_indices(values, op, call, layouts, tensor)
            else:
                _fill(values)
    tensors = {
        tensor: _view(buffers[place.buffer], place.tensor, place.offset) for tensor, place in signature.places.items()
    }
    args = tuple(_resolve(value, tensors, numbers) for value in call.args)
    kwargs = {name: _resolve(value, tensors, numbers) for name, value in call.kwargs.items()}
    return bind(call, args, kwargs, [tensors[tensor] if tensor >= 0 else None for tensor in call.results])


def _view(buffer: torch.Tensor, tensor: Tensor, offset: int) -> torch.Tensor:
    return _whole(buffer, tensor).as_strided(tensor.shape, tensor.strides, offset)


def _whole(buffer: torch.Tensor, tensor: Tensor) -> torch.Tensor:
    dtype = getattr(torch, tensor.dtype)
    return buffer[: buffer.numel() // dtype.itemsize * dtype.itemsize].view(dtype)


def _fill(values: torch.Tensor) -> None:
    if values.is_complex():
        values = torch.view_as_real(values)
    if values.is_floating_point():
        # away from zero: subnormal numbers are slow, and a step hardly meets them
        values.uniform_(0.1, 1.0)
    else:
        values.random_(0, 2)


def _resolve(value: Any, tensors: Mapping[int, torch.Tensor], numbers: Mapping[str, float]) -> Any:
    if isinstance(value, TensorRef):
        return tensors[value.tensor]
    if isinstance(value, ScalarRef):
        return numbers[value.name]
    if isinstance(value, list | tuple):
        return type(value)(_resolve(item, tensors, numbers) for item in value)
    return value
