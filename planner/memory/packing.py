"""Offsets for boxes that must not meet: each is alive for a span of time and takes some bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.errors import StowageError

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Packing:
    """Where boxes lie.

    Args:
        offsets: `[boxes]`, bytes.
        height: the largest offset + size, in bytes.
        max_live: bytes that any placement needs: the most that are alive at once.
        optimal: whether `height` is `max_live`, so that no placement is lower. False does not mean that one is.
        seconds: time the search took.
    """

    offsets: Ints
    height: int
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
    rounds: int = 48,
) -> Packing:
    """Find low offsets, such that boxes that are alive at the same time share no byte.

    Greedy placement by first fit and best fit in several orders, then squeaky-wheel optimization (Joslin and
    Clements, JAIR 1999): boxes that came to lie above the goal are placed earlier in the next round. The same
    boxes get the same offsets every time.

    Args:
        lower, upper: `[boxes]`, alive at times `lower <= t < upper`; where they are equal, never.
        sizes: `[boxes]`, bytes.
        capacity: stop as soon as the height is no more than this; without it, when it is provably least.
        alignment: every offset is a multiple of this many bytes.
        fixed: `[boxes]`, offsets that are settled, -1 for the others.
        rounds: how often to reorder after the greedy orders.

    Raises:
        StowageError: the lists differ in length, a span or size is negative, or settled boxes meet.
    """
    from planner.memory.packing_kernel import place

    begin = perf_counter()
    boxes = _Boxes.of(lower, upper, sizes, alignment, fixed)
    goal = max(boxes.bound, capacity or 0, boxes.settled_height)
    best: Ints | None = None
    height = 0
    for order, best_fit in boxes.attempts(goal, rounds):
        offsets, clash = place(order, boxes.lower, boxes.upper, boxes.rounded, boxes.fixed, boxes.segments, best_fit)
        if clash >= 0:
            raise StowageError(f"box {clash} meets another whose offset is settled as well; settle only one of them")
        boxes.tops = offsets + boxes.sizes
        reached = int(boxes.tops.max(initial=0))
        if best is None or reached < height:
            best, height = offsets, reached
        if height <= goal:
            break
    assert best is not None
    return Packing(best, height, boxes.bound, height == boxes.bound, perf_counter() - begin)


class _Boxes:
    """Boxes on compressed time, with the orders to try them in."""

    def __init__(self, lower: Ints, upper: Ints, sizes: Ints, alignment: int, fixed: Ints) -> None:
        from planner.memory.packing_kernel import live_bound

        self.sizes = sizes
        self.fixed = fixed
        self.rounded = -(-sizes // alignment) * alignment
        self.length = (upper - lower).astype(np.float64)
        times, at = np.unique(np.concatenate((lower, upper)), return_inverse=True)
        self.lower, self.upper = at[: len(sizes)].astype(np.int64), at[len(sizes) :].astype(np.int64)
        self.segments = max(len(times) - 1, 1)
        padding = self.rounded - sizes
        by_padding = np.argsort(-padding, kind="stable")
        self.bound = int(live_bound(self.lower, self.upper, self.rounded, padding, by_padding, self.segments))
        settled = fixed >= 0
        self.settled_height = int((fixed + sizes)[settled].max(initial=0))
        #: Where boxes ended in the attempt before; the next one looks at it.
        self.tops = np.zeros_like(sizes)

    @classmethod
    def of(
        cls, lower: ArrayLike, upper: ArrayLike, sizes: ArrayLike, alignment: int, fixed: ArrayLike | None
    ) -> _Boxes:
        columns = [np.asarray(column) for column in (lower, upper, sizes)]
        columns.append(np.full(len(columns[2]), -1) if fixed is None else np.asarray(fixed))
        if len({column.shape for column in columns}) > 1 or columns[0].ndim != 1:
            raise StowageError(
                "boxes need as many lower as upper bounds, sizes and settled offsets; give lists of one length"
            )
        if any(len(column) and column.dtype.kind not in "iu" for column in columns):
            raise StowageError("bounds, sizes and offsets of boxes are whole numbers; round them first")
        if alignment < 1:
            raise StowageError(f"an alignment of {alignment} bytes is none; give 1 or more")
        begin, end, size, offset = (column.astype(np.int64) for column in columns)
        for wrong, what in (
            (end < begin, "ends before it begins"),
            (size < 0, "has a negative size"),
            ((offset >= 0) & (offset % alignment != 0), f"has a settled offset that is no multiple of {alignment}"),
        ):
            if wrong.any():
                raise StowageError(f"box {int(np.argmax(wrong))} {what}; correct it")
        # What is never alive takes no memory.
        return cls(begin, end, np.where(begin < end, size, 0), alignment, np.maximum(offset, -1))

    def attempts(self, goal: int, rounds: int) -> Iterator[tuple[Ints, bool]]:
        """Orders, each with whether to take the best fit; later ones depend on how earlier ones went."""
        size, length = self.rounded.astype(np.float64), self.length
        keys: Sequence[tuple[NDArray[np.float64], ...]] = (
            (size, length), (size * length, size), (length, size), (-self.lower.astype(np.float64), size),
            (size * np.sqrt(length), size), (np.sqrt(size) * length, size),
        )  # fmt: skip
        for key in keys:
            order = self._descending(*key)
            yield order, False
            yield order, True
        random = np.random.default_rng(0)
        bases = (size, size * np.sqrt(length), length)
        for base in bases:
            urgency = base.copy()
            yield self._descending(urgency), False
            for _ in range(rounds // len(bases)):
                loud = self.tops > goal
                urgency[loud] *= random.uniform(1.17, 1.95, int(loud.sum()))
                yield self._descending(urgency), False

    def _descending(self, *keys: NDArray[np.float64]) -> Ints:
        # What is alive all the time cuts the others into strips; lowest is as good for it as anywhere.
        always = (self.lower > 0) | (self.upper < self.segments)
        return np.lexsort((*(-key for key in reversed(keys)), always))
