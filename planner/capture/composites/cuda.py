"""Composite operators that are one kernel on NVIDIA's GPUs, for fake tensors of the CPU, which has none for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from planner import torch_private as private
from planner.capture.composites.cuda_attention import attention
from planner.capture.composites.cuda_autocast import single
from planner.errors import StowageError

_ATEN = torch.ops.aten


def _dropout(go_on: private.Continuation, source: Tensor, p: float, train: bool) -> Any:
    """Its mask takes a byte for an element there, and as much as the element where it is drawn and multiplied."""
    if train and 0 < p < 1 and source.numel():
        return _ATEN.native_dropout.default(source, p, train)[0]
    return go_on(source, p, train)


def _rms_norm(
    go_on: private.Continuation,
    source: Tensor,
    shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Any:
    """One kernel, except of two dtypes or of channels that are last in memory; autocast has it in single precision."""
    if private.autocast_enabled():
        source, weight = single(source), None if weight is None else single(weight)
    if (weight is None or weight.dtype is source.dtype) and private.suggested(source) is torch.contiguous_format:
        return _RmsNorm.apply(source, shape, weight, eps)  # type: ignore[no-untyped-call]
    return go_on(source, shape, weight, eps)


class _RmsNorm(torch.autograd.Function):
    """The kernel and its derivative; without one for the CPU, PyTorch would call others in its place."""

    @staticmethod
    def forward(ctx: Any, source: Tensor, shape: Sequence[int], weight: Tensor | None, eps: float | None) -> Tensor:
        with private.below_autograd():
            result, deviation = _ATEN._fused_rms_norm.default(source, shape, weight, eps)
        ctx.save_for_backward(source, weight, deviation)
        ctx.shape = shape
        found: Tensor = result
        return found

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Any:
        source, weight, deviation = ctx.saved_tensors
        wanted = [ctx.needs_input_grad[0], ctx.needs_input_grad[2]]
        with private.below_autograd():
            of_source, of_weight = _ATEN._fused_rms_norm_backward.default(
                gradient, source, ctx.shape, deviation, weight, wanted
            )
        return of_source, None, of_weight, None


def _lstm_cell(
    go_on: private.Continuation, source: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor,
    b_ih: Tensor | None = None, b_hh: Tensor | None = None,
) -> Any:  # fmt: skip
    """Two products, and a kernel that keeps the gates; PyTorch does not know its results without a bias."""
    if b_ih is None or b_hh is None:
        return go_on(source, hx, w_ih, w_hh, b_ih, b_hh)
    hidden, cell = hx
    gates = functional.linear(source, w_ih), functional.linear(hidden, w_hh)
    # autocast has converted the weights, once in a step; biases are small, and converted at every call
    if private.autocast_enabled():
        cell, b_ih, b_hh = (one.to(gates[0].dtype) for one in (cell, b_ih, b_hh))
    return _ATEN._thnn_fused_lstm_cell.default(*gates, cell, b_ih, b_hh)[:2]


def _lstm(go_on: private.Continuation, *args: Any) -> Any:
    """Refuse it under autocast: oneDNN, which has it for the CPU, need not have it in half precision."""
    if private.autocast_enabled():
        raise StowageError(
            "nn.LSTM under autocast cannot be captured without a GPU: make it of nn.LSTMCell, or capture it without "
            "autocast"
        )
    return go_on(*args)


#: By operator, a function that takes one to continue without it, and the operator's arguments.
ON_CUDA: dict[private.OpOverload, Callable[..., Any]] = {
    _ATEN.dropout.default: _dropout,
    _ATEN.lstm.input: _lstm,
    _ATEN.lstm_cell.default: _lstm_cell,
    _ATEN.rms_norm.default: _rms_norm,
    _ATEN.scaled_dot_product_attention.default: attention,
}
