"""PyTorch derivatives that read values in eager mode, and use another formula as soon as a dispatch mode is active."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from planner.errors import StowageError
from planner.torch_private import OpOverload

_ATEN = torch.ops.aten


def as_in_eager(node: str, target: OpOverload, args: tuple[Any, ...], where: str) -> Callable[[], Tensor] | None:
    """Return what eager PyTorch runs in place of a call made by a derivative, or None if it makes the same call.

    Args:
        node: autograd's name of the running derivative; empty outside a backward pass.
        target, args: the call.
        where: the module, for the error.

    Raises:
        StowageError: what eager PyTorch runs depends on values.
    """
    advice = _BY_VALUES.get((node, target))
    if advice is not None:
        raise StowageError(f"the derivative of {advice[0]} in {where} {advice[1]}")
    if node in _EVENLY and target is _ATEN.mul.Tensor and args[0].dtype is torch.bool:
        mask, share = args
        # a product with the mask would turn a negative share into -0.0 and an infinite one into NaN
        return lambda: share.new_zeros(mask.shape).masked_fill_(mask, share)
    return None


#: Derivatives of ops that select one of all elements: the gradient is shared equally by all elements of that value.
_EVENLY = frozenset({"MaxBackward1", "MinBackward1", "MedianBackward0", "NanmedianBackward0"})

_PROD = (
    "prod",
    "divides by each factor unless one of them is 0, which a plan cannot ask: multiply slices, for example by "
    "functools.reduce(torch.mul, x.unbind(dim))",
)
_MASKED_FILL = (
    "masked_fill with respect to its value",
    "adds up as many numbers as the mask says, which a plan cannot hold: write torch.where(mask, value, x)",
)
#: By derivative and the call that identifies the formula, the op and what to write instead.
_BY_VALUES: dict[tuple[str, Any], tuple[str, str]] = {
    ("ProdBackward0", _ATEN.cumprod.default): _PROD,
    ("ProdBackward1", _ATEN.cumprod.default): _PROD,
    ("MaskedFillBackward1", _ATEN.sum.default): _MASKED_FILL,
}
