"""Byte-wise comparison of tensors that may be on different devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

_PIECE = 2**24  # bytes compared at once, which bounds the memory that this takes


def bits_differ(these: Sequence[Tensor], those: Sequence[Tensor]) -> Callable[[], bool]:
    """A check of whether any byte of some tensors differs from others'.

    Args:
        these, those: contiguous tensors on any device, pairwise of equal size; they are kept alive, and must not move.
    """
    pairs = [
        pair
        for one, other in zip(these, those, strict=True)
        if one.numel()
        for pair in zip(_pieces(one), _pieces(other), strict=True)
    ]

    def differ() -> bool:
        with torch.inference_mode():
            found: dict[torch.device, list[Tensor]] = {}
            for one, other in pairs:
                found.setdefault(one.device, []).append((one != other.to(one.device)).any())
            return any(bool(torch.stack(flags).any()) for flags in found.values())

    return differ


def _pieces(tensor: Tensor) -> Sequence[Tensor]:
    flat = tensor.detach().view(-1).view(torch.uint8)  # refuses one that is not contiguous
    return flat.split(_PIECE)  # type: ignore[no-untyped-call, no-any-return]
