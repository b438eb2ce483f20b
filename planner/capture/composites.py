"""Operators that PyTorch makes of others, and of other ones as soon as a dispatch mode is on.

Such operators ask whether a tensor is "subclass-like", which under a dispatch mode every tensor is. They are made here
as eager PyTorch makes them, wherever they are called from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from planner.capture import torch_private as private

_ATEN = torch.ops.aten


def as_in_eager() -> AbstractContextManager[None]:
    """Have the operators of this thread made of those that eager PyTorch makes them of."""
    return private.overriding(_KERNELS)


def _differentiable(*tensors: Tensor) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def _below_autocast(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Let autocast convert the arguments first; it calls the operator anew."""

    def made(go_on: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return (go_on if torch.is_autocast_enabled("cpu") else kernel)(*args, **kwargs)

    return made


@_below_autocast
def _eigvalsh(source: Tensor, triangle: str = "L") -> Tensor:
    """Eigenvectors are computed for a derivative alone, and by another routine, whose eigenvalues round otherwise."""
    values: Tensor = _ATEN._linalg_eigh.default(source, triangle, _differentiable(source))[0]
    return values


@_below_autocast
def _svdvals(source: Tensor, *, driver: str | None = None) -> Tensor:
    values: Tensor = _ATEN._linalg_svd.default(source, False, _differentiable(source), driver=driver)[1]
    return values


@_below_autocast
def _eigvals(source: Tensor) -> Tensor:
    values: Tensor = (
        _ATEN.linalg_eig.default(source)[0] if _differentiable(source) else _ATEN._linalg_eigvals.default(source)
    )
    return values


def _matmul(go_on: Callable[..., Tensor], left: Tensor, right: Tensor) -> Tensor:
    """A single matrix beside a batch becomes one product with all rows for a derivative alone."""
    if left.dim() == right.dim() == 3 and left.shape[0] != right.shape[0]:
        if left.shape[0] == 1 and not left.requires_grad:
            left = left.expand(right.shape[0], -1, -1)
        elif right.shape[0] == 1 and not right.requires_grad:
            right = right.expand(left.shape[0], -1, -1)
    return go_on(left, right)


def _ctc_loss(
    go_on: Callable[..., Tensor], log_probs: Tensor, targets: Tensor, inputs: Sequence[int], lengths: Sequence[int],
    blank: int = 0, reduction: int = 1, zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Its mean divides by lengths, which PyTorch writes into memory that fake tensors do not have."""
    if reduction != _MEAN:
        return go_on(log_probs, targets, inputs, lengths, blank, reduction, zero_infinity)
    losses = go_on(log_probs, targets, inputs, lengths, blank, 0, zero_infinity)
    return (losses / torch.tensor(lengths, dtype=losses.dtype).clamp_min(1)).mean()


_MEAN = 1
_KERNELS: dict[private.OpOverload, Callable[..., Any]] = {
    _ATEN.linalg_eigvalsh.default: _eigvalsh,
    _ATEN.linalg_svdvals.default: _svdvals,
    _ATEN.linalg_eigvals.default: _eigvals,
    _ATEN.matmul.default: _matmul,
    _ATEN.ctc_loss.IntList: _ctc_loss,
}
