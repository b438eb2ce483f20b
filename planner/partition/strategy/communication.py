"""Bytes that workers must receive, all of them together, as a function of sizes and of how many workers there are."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from planner.partition.strategy.states import Partial, Replicated, State, Unread, held
from planner.partition.strategy.strategies import Strategy, needs
from planner.partition.tdl import Description, Extent, Region


def stage_bytes(strategy: Strategy, workers: int, itemsize: int) -> int:
    """Bytes received to combine the stages of an op on all workers: a reduce-scatter and an all-gather for each."""
    return sum(2 * (workers - 1) * stage.elements * itemsize for stage in strategy.stages)


def input_bytes(
    description: Description, strategy: Strategy, place: int, have: State, workers: int, itemsize: int
) -> int:
    """Bytes received so that every worker has what it needs of one input.

    Args:
        description, strategy: the op and how it is split.
        place: which input.
        have: how the input is spread before.
        workers: how many there are.
        itemsize: bytes of an element.
    """
    if isinstance(strategy.inputs[place], Unread | Partial):
        shape = description.inputs[place].shape
        return conversion_bytes(shape, have, strategy.inputs[place], workers, itemsize)
    wanted = [needs(description, strategy, workers, worker)[place] for worker in range(workers)]
    return received_elements(description.inputs[place].shape, have, wanted) * itemsize


def conversion_bytes(shape: tuple[int, ...], have: State, want: State, workers: int, itemsize: int) -> int:
    """Bytes received to spread a tensor in another way (its halos aside)."""
    if isinstance(have, Partial) and not have.stays_partial and not isinstance(want, Unread):
        return 2 * (workers - 1) * prod(shape) * itemsize
    if isinstance(want, Partial) and isinstance(have, Partial) and have != want:
        return (workers - 1) * prod(shape) * itemsize  # reduced to chunks, which are partial sums with zeros around
    if isinstance(want, Unread | Partial):
        return 0
    wanted = [held(shape, want, workers, worker) for worker in range(workers)]
    return received_elements(shape, have, wanted) * itemsize


def received_elements(shape: tuple[int, ...], have: State, wanted: Sequence[Region | None]) -> int:
    """Elements of a tensor that workers receive from others so that each has the region that it wants.

    Partial results are reduced by a reduce-scatter; what a worker wants beyond one chunk of its own is then gathered.
    """
    workers = len(wanted)
    total = sum(region.elements for region in wanted if region is not None)
    if isinstance(have, Replicated | Unread):
        return 0
    if isinstance(have, Partial):
        return (workers - 1) * prod(shape) + max(total - prod(shape), 0)
    return total - sum(
        overlap(region, held(shape, have, workers, worker))
        for worker, region in enumerate(wanted)
        if region is not None
    )


def overlap(left: Region, right: Region) -> int:
    """How many elements two regions of a tensor share."""
    pairs = zip(left.extents, right.extents, strict=True)
    return prod(int(np.count_nonzero(extent_mask(a) & extent_mask(b))) for a, b in pairs)


def extent_mask(extent: Extent) -> NDArray[np.bool_]:
    """Which indices of a dimension an extent contains."""
    mask = np.ones(1, dtype=bool)
    for digit in extent:
        values = np.arange(digit.size)
        inside = (values >= digit.start) & (values < digit.stop)
        mask = (mask[:, None] & inside[None, :]).ravel()
    return mask
