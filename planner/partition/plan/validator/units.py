"""Bytes that workers receive at one level to bring a tensor from one state to another: the contract of a partition."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from planner.partition.plan.validator.index_sets import Mask, part_of_dimension
from planner.partition.plan.validator.shares import Boxes
from planner.partition.strategy import Partial, Replicated, Split, State, Unread
from planner.partition.tdl import Reduction


@lru_cache(maxsize=1 << 16)
def converted(shape: tuple[int, ...], have: State | None, want: State | None, workers: int) -> int:
    """Elements received by all workers together, halos aside.

    Args:
        shape: of the tensor.
        have, want: its states; None for a view whose root is split in a way that no split of the view is. Workers then
            may hold nothing of what they want, and nobody may keep what it has.
        workers: how many there are at the level.
    """
    elements = prod(shape)
    if have == want or isinstance(want, Unread) or isinstance(have, Replicated):
        return 0
    if have is None:
        return elements * (workers if isinstance(want, Replicated) else 1)
    if isinstance(have, Partial):
        reduced = (workers - 1) * elements
        everywhere = isinstance(want, Replicated) or have.reduction is not Reduction.SUM
        return 2 * reduced if everywhere else reduced
    if want is None:
        return elements
    if isinstance(want, Partial):
        return 0
    if isinstance(want, Replicated):
        return (workers - 1) * elements
    assert isinstance(have, Split)
    assert isinstance(want, Split)
    return elements - sum(_shared(shape, have, want, workers, worker) for worker in range(workers))


def fetched(shape: tuple[int, ...], have: State | None, boxes: Boxes) -> int:
    """Elements received so that every worker has a box of a tensor."""
    workers = len(boxes)
    elements = prod(shape)
    if isinstance(have, Replicated):
        return 0
    if have is None:
        return elements * workers
    wanted = sum(prod(int(mask.sum()) for mask in box) for box in boxes if box is not None)
    if not isinstance(have, Split):
        return (workers - 1) * elements + max(wanted - elements, 0)
    held = 0
    for worker, box in enumerate(boxes):
        if box is not None:
            own = part_of_dimension(shape, have, workers, worker)
            sizes = [int((mask & own if d == have.dimension else mask).sum()) for d, mask in enumerate(box)]
            held += prod(sizes)
    return wanted - held


def outer_copies(have: State | None, want: State | None, workers: int) -> int:
    """How many times more an inner level moves because of a level outside of it: k times its share, f."""
    if isinstance(have, Partial) or (isinstance(want, Replicated) and not isinstance(have, Partial)):
        return workers
    return 1


def inner_copies(have: State | None, want: State | None, workers: int) -> int:
    """How many times more an outer level moves because of a level inside of it, m."""
    both = (have, want)
    if all(isinstance(state, Replicated) for state in both) or all(isinstance(state, Partial) for state in both):
        return workers
    return 1


def _shared(shape: tuple[int, ...], have: Split, want: Split, workers: int, worker: int) -> int:
    """How many elements of a worker's chunk in one state are in its chunk in another."""
    masks: dict[int, Mask] = {}
    for split in (have, want):
        own = part_of_dimension(shape, split, workers, worker)
        masks[split.dimension] = masks[split.dimension] & own if split.dimension in masks else own
    rest = prod(size for dimension, size in enumerate(shape) if dimension not in masks)
    return rest * prod(int(np.count_nonzero(mask)) for mask in masks.values())
