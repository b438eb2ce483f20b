"""What all ranks must agree on before they compute together: where one differs, all of them say so in one sentence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from planner.errors import StowageError
from planner.run.workers.launch.ranks import Ranks


class Fact(NamedTuple):
    """Something that every rank must have alike.

    Args:
        name: of it.
        value: of it at this rank, as text.
        remedy: what to do where ranks differ.
        is_shown: whether the value says something to people.
    """

    name: str
    value: str
    remedy: str
    is_shown: bool = False


def refuse_differences(ranks: Ranks, facts: Sequence[Fact]) -> None:
    """Compare facts across ranks, all of which know the same ones.

    Raises:
        StowageError: a rank's differs from rank 0's; it is the same at every rank.
        RankFailedError: a rank has failed.
    """
    own = [fact.value for fact in facts]
    digests = ranks.share(digest_of_text(json.dumps(own)))
    if len(set(digests)) == 1:
        return
    table = ranks.share(own)
    for place, fact in enumerate(facts):
        for rank, values in enumerate(table):
            theirs, first = values[place], table[0][place]
            if theirs != first:
                how = f"is {theirs}, and rank 0's is {first}" if fact.is_shown else "is not the same as rank 0's"
                raise StowageError(f"rank {rank}'s {fact.name} {how}: {fact.remedy}")


def digest_of_text(text: str) -> str:
    """A hash of text."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def digest_of(tensors: Iterable[Tensor]) -> str:
    """A hash of the bits, shapes and dtypes of tensors."""
    digest = hashlib.blake2b(digest_size=16)
    for each in tensors:
        value = each.detach().resolve_conj().resolve_neg()
        digest.update(f"{value.dtype},{list(value.shape)};".encode())
        digest.update(value.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
