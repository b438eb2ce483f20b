"""Strides of the results of the CPU's kernels, which fake tensors do not always predict.

Later kernels sum in the order of strides, so a wrong prediction changes the bits of everything that follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor

_ATEN = torch.ops.aten
_ORDERS = {4: (1, 3, 2, 0), 5: (1, 4, 3, 2, 0)}
_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}
BATCH_NORMALISATIONS = frozenset({
    _ATEN.native_batch_norm.default, _ATEN._native_batch_norm_legit.default, _ATEN._native_batch_norm_legit.no_stats,
    _ATEN._native_batch_norm_legit_no_training.default,
})  # fmt: skip


def right_strides(target: Any, args: Sequence[Any], result: Any) -> Any:
    """Return the result of an operator's fake kernel with the strides of its real kernel.

    Args:
        target: the overload.
        args: its arguments, on the CPU.
        result: a tensor, or several.
    """
    form = _FORMS.get(target)
    if form is not None:
        first, *others = (result,) if isinstance(result, Tensor) else result
        found = first if first is None else form(args, first)
        return found if isinstance(result, Tensor) else (found, *others)
    if target in _STRAIGHT:
        if isinstance(result, Tensor):
            return result.contiguous()
        return tuple(None if each is None else each.contiguous() for each in result)
    if target in _ITERATED:
        operands = [value for value in args if isinstance(value, Tensor)]
        if len(operands) > 1 and not all(value.is_contiguous() and value.shape == result.shape for value in operands):
            return _strided(result, _iterated(target, operands))
    return result


def plainly_laid(tensor: Tensor) -> bool:
    """Whether a tensor is dense, with channels first or last."""
    last = _LAST.get(tensor.dim(), torch.contiguous_format)
    return tensor.is_contiguous() or tensor.is_contiguous(memory_format=last)


def suggested(tensor: Tensor) -> torch.memory_format:
    """The format that kernels with channels use: channels last if the strides are in that order, else first."""
    order = _ORDERS.get(tensor.dim())
    if order is None or tensor.stride(1) == 0:
        return torch.contiguous_format
    least = 0
    for dim in order:
        size, stride = tensor.shape[dim], tensor.stride(dim)
        if size == 0 or stride < least or (dim == 0 and least == tensor.stride(1)):
            return torch.contiguous_format
        least = stride * max(size, 1)
    return _LAST[tensor.dim()]


def _iterated(target: Any, operands: Sequence[Tensor]) -> tuple[int, ...]:
    """Strides of the result of PyTorch's iterator over operands, computed with tensors without memory.

    They are computed in single precision, whose kernel without memory is the iterator itself. Operands that the
    iterator first converts to a common type lose their repetitions.
    """
    common = reduce(torch.promote_types, [value.dtype for value in operands])
    converts = target not in (_ATEN.where.self, _ATEN.native_dropout_backward.default)
    bodiless = [torch.empty_strided(value.shape, value.stride(), device="meta") for value in operands]
    plain = [
        torch.empty_like(each) if converts and value.dim() and value.dtype is not common else each
        for each, value in zip(bodiless, operands, strict=True)
    ]
    if len(plain) == 3:
        return torch.addcmul(*plain).stride()
    return torch.add(plain[0], plain[1]).stride()


def _formatted(position: int) -> Callable[[Sequence[Any], Tensor], Tensor]:
    """Lay out a result in the format that an argument suggests."""

    def form(args: Sequence[Any], result: Tensor) -> Tensor:
        return result.contiguous(memory_format=suggested(args[position]))

    return form


def _normalised(args: Sequence[Any], result: Tensor) -> Tensor:
    """Lay out a result of batch normalisation, which reformats an input that has channels neither first nor last."""
    return result if plainly_laid(args[0]) else result.contiguous(memory_format=suggested(args[0]))


def _like(position: int) -> Callable[[Sequence[Any], Tensor], Tensor]:
    """Lay out a result like an argument."""

    def form(args: Sequence[Any], result: Tensor) -> Tensor:
        return _strided(result, torch.empty_like(args[position]).stride())

    return form


def _threshold(args: Sequence[Any], result: Tensor) -> Tensor:
    return _strided(result, _iterated(_ATEN.threshold_backward.default, (args[1], args[0])))


def _strided(tensor: Tensor, strides: Sequence[int]) -> Tensor:
    if tensor.stride() == strides:
        return tensor
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device)


_FORMS = {
    **dict.fromkeys(BATCH_NORMALISATIONS, _normalised),
    _ATEN.native_batch_norm_backward.default: _formatted(1),
    _ATEN.batch_norm_backward.default: _formatted(1),
    _ATEN.max_unpool2d.default: _formatted(0),
    _ATEN.replication_pad2d_backward.default: _formatted(1),
    _ATEN.channel_shuffle.default: _formatted(0),
    _ATEN.binary_cross_entropy_backward.default: _like(1),
    _ATEN.threshold_backward.default: _threshold,
}
_STRAIGHT = frozenset({
    _ATEN._log_softmax_backward_data.default, _ATEN.huber_loss_backward.default, _ATEN.mse_loss_backward.default,
    _ATEN.smooth_l1_loss_backward.default, _ATEN.log_sigmoid_forward.default, _ATEN.pow.Scalar,
    _ATEN.native_layer_norm_backward.default,
})  # fmt: skip
#: Kernels that are a loop of PyTorch's iterator over their tensor arguments, in order.
_ITERATED = frozenset({
    _ATEN.add.Tensor, _ATEN.sub.Tensor, _ATEN.mul.Tensor, _ATEN.div.Tensor, _ATEN.div.Tensor_mode,
    _ATEN.floor_divide.default, _ATEN.fmod.Tensor, _ATEN.remainder.Tensor, _ATEN.pow.Tensor_Tensor,
    _ATEN.maximum.default, _ATEN.minimum.default, _ATEN.atan2.default, _ATEN.hypot.default, _ATEN.copysign.Tensor,
    _ATEN.logaddexp.default, _ATEN.xlogy.Tensor, _ATEN.special_xlog1py.default, _ATEN.gelu_backward.default,
    _ATEN.silu_backward.default, _ATEN.sigmoid_backward.default, _ATEN.tanh_backward.default,
    _ATEN.native_dropout_backward.default, _ATEN.addcmul.default, _ATEN.addcdiv.default, _ATEN.lerp.Tensor,
    _ATEN.where.self, _ATEN.gt.Tensor, _ATEN.ge.Tensor, _ATEN.lt.Tensor, _ATEN.le.Tensor, _ATEN.eq.Tensor,
    _ATEN.ne.Tensor,
})  # fmt: skip

#: Operators whose fake kernels may return wrong strides.
WRONG_STRIDES = frozenset(_FORMS) | _STRAIGHT | _ITERATED
