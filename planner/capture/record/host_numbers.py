"""Numbers that code of a step assigns to places of a tensor on a GPU (`x[:, 0] = 3`): PyTorch has them on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from planner import torch_private as private

_ATEN = torch.ops.aten
#: By operator, which argument is the number; kernels of a GPU read it on the host.
_NUMBERS = {_ATEN.fill_.Tensor: 1, _ATEN.index_put_.default: 2}


def assigning(
    target: private.OpOverload, args: Sequence[Any], value_of: Callable[[torch.Tensor], torch.Tensor | None]
) -> Callable[[], Any] | None:
    """A call that assigns the same number without a tensor on the host; None if a call needs no other.

    Args:
        target, args: the call, in a step for a GPU.
        value_of: the value of a tensor that is written in the code; None for any other.
    """
    place = _NUMBERS.get(target)
    if place is None or args[place].dim():
        return None
    filled, value = args[0], value_of(args[place])
    if value is None:
        return None
    with private.no_modes():
        read = value.item()
    if target is _ATEN.fill_.Tensor:
        return lambda: _ATEN.fill_.Scalar(filled, read)
    return lambda: _ATEN.index_put_.default(
        filled,
        args[1],
        _ATEN.scalar_tensor.default(read, dtype=filled.dtype, device=private.device_of(filled)),
        *args[3:],
    )
