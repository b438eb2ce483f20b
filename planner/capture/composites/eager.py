"""Composite operators that PyTorch decomposes differently as soon as a dispatch mode is active.

Such operators check whether a tensor is "subclass-like", which every tensor is under a dispatch mode. They are
decomposed here as in eager PyTorch, wherever they are called from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from planner import torch_private as private

_ATEN = torch.ops.aten


def _differentiable(*tensors: Tensor) -> bool:
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def _below_autocast(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Let autocast convert the arguments first; it then calls the operator again."""

    def made(go_on: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return (go_on if private.autocast_enabled() else kernel)(*args, **kwargs)

    return made


@_below_autocast
def _eigvalsh(source: Tensor, triangle: str = "L") -> Tensor:
    """Compute eigenvectors only for a derivative: they need another routine, whose eigenvalues round differently."""
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
    """Multiply a single matrix with a batch as one product over all rows only if a derivative needs it."""
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
    """Compute the mean here, because PyTorch writes the lengths to divide by into memory, which fake tensors lack."""
    if reduction != _MEAN:
        return go_on(log_probs, targets, inputs, lengths, blank, reduction, zero_infinity)
    losses = go_on(log_probs, targets, inputs, lengths, blank, 0, zero_infinity)
    return (losses / torch.tensor(lengths, dtype=losses.dtype).clamp_min(1)).mean()


_MEAN = 1
#: By operator, a function that takes one to go on without it, and the operator's arguments.
AS_IN_EAGER: dict[private.OpOverload, Callable[..., Any]] = {
    _ATEN.linalg_eigvalsh.default: _eigvalsh,
    _ATEN.linalg_svdvals.default: _svdvals,
    _ATEN.linalg_eigvals.default: _eigvals,
    _ATEN.matmul.default: _matmul,
    _ATEN.ctc_loss.IntList: _ctc_loss,
}
