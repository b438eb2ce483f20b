"""The parts of all ranks at each rank: of those that have the same bits, one sends them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from planner.run.workers.communication.tcp import Tcp
from planner.run.workers.launch.agreement import digest_of
from planner.run.workers.launch.ranks import Ranks

#: Of a part: the hash of it, and its shape; None of what a rank has not.
_Kept = tuple[str, Sequence[int]] | None


def gather_parts(
    ranks: Ranks, tcp: Tcp, own: Mapping[str, Tensor], dtypes: Mapping[str, torch.dtype]
) -> list[dict[str, Tensor]]:
    """Per rank, its parts of tensors by key.

    Args:
        ranks: all of them, which call this together.
        tcp: between them.
        own: this rank's parts.
        dtypes: by key, of all tensors; the same keys in the same order at all ranks.
    """
    kept = [(digest_of([own[key]]), list(own[key].shape)) if key in own else None for key in dtypes]
    parts: list[dict[str, Tensor]] = [{} for _ in range(ranks.ranks)]
    for (key, dtype), *everywhere in zip(dtypes.items(), *ranks.share(kept), strict=True):
        for rank, part in enumerate(_exchanged(ranks.rank, tcp, own.get(key), everywhere, dtype)):
            if part is not None:
                parts[rank][key] = part
    return parts


def _exchanged(
    here: int, tcp: Tcp, own: Tensor | None, kept: Sequence[_Kept], dtype: torch.dtype
) -> list[Tensor | None]:
    """Per rank, its part of one tensor; the first that has some bits sends them to all that have not."""
    digests = [None if each is None else each[0] for each in kept]
    shapes = {each[0]: each[1] for each in kept if each is not None}
    mine = digests[here]
    found = {} if own is None or mine is None else {mine: own}
    sends, receives = {}, {}
    if own is not None and digests.index(mine) == here:
        sends = {rank: _bytes(own) for rank, digest in enumerate(digests) if digest != mine}
    for digest, shape in shapes.items():
        if digest != mine:
            found[digest] = torch.empty(shape, dtype=dtype)
            receives[digests.index(digest)] = _bytes(found[digest])
    tcp.exchange(sends, receives)
    return [None if digest is None else found[digest] for digest in digests]


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().reshape(-1).view(torch.uint8)
