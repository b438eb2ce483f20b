"""Boxes of many tensors as bytes in one piece, which is sent far faster than each tensor for itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import torch
from torch import Tensor

from planner.run.checkpoint.part import OwnedBox, box_of

#: Each box begins at a multiple of it, so that it can be seen as numbers.
_ALIGNMENT = 16


def gathered(owned: Sequence[OwnedBox], parts: Mapping[str, Tensor]) -> Tensor:
    """Copies of boxes, one after another.

    Args:
        owned: which.
        parts: by key, the tensors that they are boxes of.
    """
    size = max((end for _, end in _places(owned, parts)), default=0)
    found = torch.empty(size, dtype=torch.uint8)
    for each, (begin, end) in zip(owned, _places(owned, parts), strict=True):
        found[begin:end].copy_(
            box_of(each, parts).clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)
        )
    return found


def scattered(found: Tensor, owned: Sequence[OwnedBox], wholes: Mapping[str, Tensor]) -> None:
    """Copy boxes to where they belong.

    Args:
        found: as `gathered` returned it.
        owned: which boxes they are.
        wholes: by key, the whole tensors.
    """
    for each, (begin, end) in zip(owned, _places(owned, wholes), strict=True):
        whole, box = wholes[each.key], each.box
        there = whole[tuple(slice(first, first + size) for first, size in zip(box.offsets, box.sizes, strict=True))]
        there.copy_(found[begin:end].view(whole.dtype).view(box.sizes))


def _places(owned: Sequence[OwnedBox], tensors: Mapping[str, Tensor]) -> Iterator[tuple[int, int]]:
    begin = 0
    for each in owned:
        end = begin + prod(each.box.sizes) * tensors[each.key].element_size()
        yield begin, end
        begin = -(-end // _ALIGNMENT) * _ALIGNMENT
