"""Offsets for boxes that must not overlap: each is alive for a span of time and takes some bytes."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.cancel import CancelToken
from planner.errors import StowageError
from planner.memory.packing.search import PackingProblem, lowest

Ints = NDArray[np.int64]
_LARGEST = 2**62


@dataclass(frozen=True, eq=False)
class Packing:
    """The offsets of boxes.

    Args:
        offsets: `[boxes]`, bytes.
        peak: the largest offset + size, in bytes.
        max_live: bytes that any placement needs: the most that are alive at once.
        optimal: whether `peak` is `max_live`, so that no placement is lower. False does not mean that one
            is.
        seconds: duration of the search.
    """

    offsets: Ints
    peak: int
    max_live: int
    optimal: bool
    seconds: float


def pack(
    lower: ArrayLike,
    upper: ArrayLike,
    sizes: ArrayLike,
    *,
    capacity: int | None = None,
    alignment: int = 1,
    fixed: ArrayLike | None = None,
    repeats: bool = False,
    rounds: int | None = None,
    stop: CancelToken | None = None,
) -> Packing:
    """Find low offsets, such that boxes that are alive at the same time share no byte.

    Greedy placement by first fit and best fit in several orders, then squeaky-wheel optimization (Joslin and
    Clements, JAIR 1999) of the best of these: boxes at high offsets are placed earlier in the next round. The same
    boxes get the same offsets every time.

    Args:
        lower, upper: `[boxes]`, alive at times `lower <= t < upper`; where they are equal, never.
        sizes: `[boxes]`, bytes.
        capacity: stop as soon as the height is no more than this; without it, when it is provably minimal.
        alignment: every offset is a multiple of this many bytes.
        fixed: `[boxes]`, predetermined offsets, -1 for the others.
        repeats: whether time is cyclic, so that a box with `upper < lower` is alive from `lower` on and until `upper`,
            at one offset.
        rounds: number of reorderings after the greedy orders; by default, more for fewer boxes.
        stop: checked before each placement of all boxes; None to never cancel.

    Raises:
        StowageError: the lists differ in length, a span or size is negative, or fixed boxes overlap.
        Cancelled: cancellation was requested.
    """
    begin = perf_counter()
    boxes = _checked(lower, upper, sizes, alignment, fixed, repeats)
    goal = max(boxes.bound, capacity or 0, boxes.fixed_peak)
    if rounds is None:
        rounds = min(max(300_000 // max(len(boxes.sizes), 1), 12), 600)
    offsets, peak = lowest(boxes, goal, rounds, stop or CancelToken())
    return Packing(offsets, peak, boxes.bound, peak == boxes.bound, perf_counter() - begin)


def _checked(
    lower: ArrayLike, upper: ArrayLike, sizes: ArrayLike, alignment: int, fixed: ArrayLike | None, repeats: bool
) -> PackingProblem:
    columns = [np.asarray(column) for column in (lower, upper, sizes)]
    columns.append(np.full(len(columns[2]), -1) if fixed is None else np.asarray(fixed))
    if len({column.shape for column in columns}) > 1 or columns[0].ndim != 1:
        raise StowageError(
            "boxes need as many lower as upper bounds, sizes and fixed offsets; give lists of one length"
        )
    if any(len(column) and column.dtype.kind not in "iu" for column in columns):
        raise StowageError("bounds, sizes and offsets of boxes are whole numbers; round them first")
    if alignment < 1:
        raise StowageError(f"alignment must be 1 byte or more, got {alignment}")
    begin, end, size, offset = (column.astype(np.int64) for column in columns)
    for wrong, what in (
        ((end < begin) & (not repeats), "ends before it begins"),
        (size < 0, "has a negative size"),
        ((offset >= 0) & (offset % alignment != 0), f"has a fixed offset that is no multiple of {alignment}"),
    ):
        if wrong.any():
            raise StowageError(f"box {int(np.argmax(wrong))} {what}; correct it")
    if size.sum(dtype=np.float64) + len(size) * alignment + offset.max(initial=0) > _LARGEST:
        raise StowageError("the boxes take more than 2**62 bytes together; give their sizes in a larger unit")
    # Boxes that are never alive take no memory.
    return PackingProblem(begin, end, np.where(begin != end, size, 0), alignment, np.maximum(offset, -1))
