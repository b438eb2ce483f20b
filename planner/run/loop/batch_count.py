"""How many batches there are, and whether the last is smaller than the others."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Any

from torch.utils.data import BatchSampler, DataLoader, default_collate

from planner.errors import StowageError


def batch_count(batches: Iterable[Any]) -> int | None:
    """The number of batches, None if unknown; a loader of an iterable data set has `__len__` but may not know it."""
    if not isinstance(batches, Sized):
        return None
    try:
        return len(batches)
    except (TypeError, NotImplementedError):
        return None


def refuse_smaller_last(batches: Iterable[Any], steps: int | None = None) -> None:
    """Refuse a loader whose last batch is smaller than the others before the steps that lead up to it.

    Only where the length of its data tells, and PyTorch's own functions make the batches.

    Args:
        batches: the loader, or any others.
        steps: the most batches that are taken; None for all.

    Raises:
        StowageError: it has such a batch.
    """
    if not isinstance(batches, DataLoader) or batches.collate_fn is not default_collate:
        return
    sampler = batches.batch_sampler
    if type(sampler) is not BatchSampler or sampler.drop_last:
        return
    samples, size = batch_count(sampler.sampler), sampler.batch_size
    if samples is None or samples < size or (steps is not None and steps <= samples // size):
        return
    if smaller := samples % size:
        raise StowageError(
            f"the last batch of this loader has {smaller} of {size} samples, and a plan is for batches of one shape: "
            f"leave it out (drop_last=True in the DataLoader), or choose a batch size that divides {samples}"
        )
