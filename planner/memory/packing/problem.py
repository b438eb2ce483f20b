"""Boxes to pack: each takes some bytes while it is alive."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.errors import StowageError

Ints = NDArray[np.int64]
Indices = NDArray[np.int32]
Gaps = Sequence[Sequence[tuple[int, int]]]
_LARGEST = 2**62


class PackingProblem:
    """Boxes with their times compressed to segments.

    Args:
        lower, upper, sizes: `[boxes]`, times and bytes; a box with `upper` before `lower` wraps around the end of time.
        alignment: bytes.
        fixed: `[boxes]`, predetermined offsets, -1 for the others.
        gaps: by box, when it is not alive in between; None for no gaps.

    Attributes:
        sizes, rounded: `[boxes]`, bytes, and rounded up to the alignment; 0 for a box that is never alive.
        span_at, span: `[boxes + 1]` and `[spans, 2]`, the segments in which each box is alive.
        segments: number of segments.
        length: `[boxes]`, from the beginning to the end of each, in units of time.
        bound: bytes that any placement needs.
        fixed_peak: bytes that the fixed boxes need.
    """

    def __init__(
        self, lower: Ints, upper: Ints, sizes: Ints, alignment: int, fixed: Ints, gaps: Gaps | None = None
    ) -> None:
        from planner.memory.packing.place import live_bound

        count = len(sizes)
        self.alignment, self.fixed = alignment, fixed
        ends = [end for of_box in gaps or () for gap in of_box for end in gap]
        times, at = np.unique(np.concatenate((lower, upper, np.array(ends, np.int64))), return_inverse=True)
        wraps = upper < lower
        self.length = upper.astype(np.float64) - lower
        self.length[wraps] += times[-1] - times[0] if len(times) else 0
        # wrapping around the end takes a segment of its own
        self.segments = max(len(times) - 1 + bool(wraps.any()), 1)
        first, last = at[:count].astype(np.int32), at[count : 2 * count].astype(np.int32)
        self.begin = np.where(wraps, 0, first).astype(np.int64)
        table = np.empty((count, 2, 2), np.int32)
        table[:, 0, 0], table[:, 0, 1] = np.where(wraps, 0, first), last
        table[:, 1, 0], table[:, 1, 1] = first, np.where(wraps, self.segments, first)
        if ends:
            self.span_at, self.span = _without_gaps(
                table, gaps or (), at[2 * count :].astype(np.int32).reshape(-1, 2), self.segments
            )
        else:
            is_span = table[:, :, 0] < table[:, :, 1]
            self.span = table[is_span]
            self.span_at = np.concatenate(([0], np.cumsum(is_span.sum(1)))).astype(np.int32)
        # A box that is always alive would split the space of the others; placed first, it is at the bottom.
        owner = np.repeat(np.arange(count), np.diff(self.span_at))
        self._not_always_alive = np.ones(count, np.bool_)
        self._not_always_alive[owner[(self.span[:, 0] == 0) & (self.span[:, 1] == self.segments)]] = False
        # boxes that are never alive take no memory
        self.sizes = np.where(np.diff(self.span_at) > 0, sizes, 0)
        self.rounded = -(-self.sizes // alignment) * alignment
        padding = self.rounded - self.sizes
        by_padding = np.argsort(-padding, kind="stable")
        bound = live_bound(self.span_at, self.span, self.rounded, padding, by_padding, self.segments)
        self.fixed_peak = int((fixed + self.sizes)[(fixed >= 0) & (self.sizes > 0)].max(initial=0))
        self.bound = max(int(bound), self.fixed_peak)

    def place(self, urgency: NDArray[np.floating], best_fit: bool) -> Ints:
        """Offsets when boxes are placed by descending urgency, the larger of equal ones first."""
        from planner.memory.packing.place import place

        order = np.lexsort((-self.rounded, -urgency, self._not_always_alive))
        offsets, clash = place(order, self.span_at, self.span, self.rounded, self.fixed, self.segments, best_fit)
        if clash >= 0:
            raise StowageError(f"box {clash} overlaps another whose offset is fixed as well; fix only one of them")
        return offsets

    def peak(self, offsets: Ints) -> int:
        """The height of a placement, in bytes."""
        return int((offsets + self.sizes)[self.sizes > 0].max(initial=0))


def _without_gaps(table: Indices, gaps: Gaps, ends: Indices, segments: int) -> tuple[Indices, Indices]:
    """Spans cut at the gaps of their boxes, which must be within them."""
    span_at, spans = [0], []
    gap = 0
    for box, cuts in enumerate(gaps):
        left = [(begin, end) for begin, end in table[box].tolist() if begin < end]
        for _ in cuts:
            begin, end = ends[gap].tolist()
            gap += 1
            parts = [(begin, end)] if begin < end else [(begin, segments), (0, end)]
            for low, high in parts:
                if low == high:
                    continue
                if not any(a <= low and high <= b for a, b in left):
                    raise StowageError(f"a gap of box {box} is outside of its life or meets another; correct it")
                left = [
                    (x, y) for a, b in left for x, y in ((a, min(b, low)), (max(a, high), b)) if x < y
                ]  # the parts before and after
        spans += left
        span_at.append(len(spans))
    return np.array(span_at, np.int32), np.array(spans, np.int32).reshape(-1, 2)


def checked(
    lower: ArrayLike, upper: ArrayLike, sizes: ArrayLike, alignment: int, fixed: ArrayLike | None, repeats: bool,
    gaps: Gaps | None,
) -> PackingProblem:  # fmt: skip
    """The problem of these columns; see `pack`.

    Raises:
        StowageError: a column is not what it must be.
    """
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
    if gaps is not None:
        if len(gaps) != len(size):
            raise StowageError(f"gaps must be a list for each of the {len(size)} boxes, got {len(gaps)}")
        if any(len(gap) != 2 or (not repeats and gap[1] <= gap[0]) for of_box in gaps for gap in of_box):
            raise StowageError("a gap must be a pair of times, the second after the first; correct it")
    return PackingProblem(begin, end, size, alignment, np.maximum(offset, -1), gaps)
