"""A worker's part of a tensor as boxes of the whole: one for a range of each dimension, several where atoms are cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import torch

from planner.partition.plan import PartitionPlan, worker_chunks


@dataclass(frozen=True, slots=True)
class PartBox:
    """A box of a whole tensor, and where a worker has it in its part.

    Args:
        offsets: per dimension, of the first element in the whole.
        local_offsets: the same in the worker's part.
        sizes: per dimension.
    """

    offsets: tuple[int, ...]
    local_offsets: tuple[int, ...]
    sizes: tuple[int, ...]


def part_boxes(plan: PartitionPlan, tensor: int, shape: Sequence[int], worker: int) -> tuple[PartBox, ...]:
    """A worker's part of a value, as `local_value` cuts it, in boxes that do not overlap.

    Args:
        plan: how the step is split.
        tensor: the tensor of the step that has the value.
        shape: of all of the value.
        worker: which worker.
    """
    runs = [_runs(places) for places in part_places(shape, plan, tensor, worker)]
    return tuple(
        PartBox(tuple(run[0] for run in each), tuple(run[1] for run in each), tuple(run[2] for run in each))
        for each in product(*runs)
    )


def part_places(shape: Sequence[int], plan: PartitionPlan, tensor: int, worker: int) -> list[torch.Tensor]:
    """Per dimension, the places of a worker's part in the whole, in order."""
    own = worker_chunks(plan, tensor, worker)
    found = []
    for dimension, size in enumerate(shape):
        places = torch.arange(size)
        for split in sorted((split for split in own if split.dimension == dimension), key=lambda split: -split.inner):
            first, last = own[split]
            places = places.reshape(-1, split.size, split.inner)[:, first:last].reshape(-1)
        found.append(places)
    return found


def _runs(places: torch.Tensor) -> list[tuple[int, int, int]]:
    """Places that follow each other, as first place, where that is among all of them, and number."""
    begins = [0, *(torch.nonzero(places.diff() != 1).flatten() + 1).tolist(), len(places)]
    return [(int(places[begin]), begin, end - begin) for begin, end in pairwise(begins) if end > begin]
