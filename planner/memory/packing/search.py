"""In which order to place boxes, so that they lie low."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.errors import StowageError

Ints = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
#: Of so few boxes every placement is tried, within so many steps.
_FEW, _NODES = 12, 20_000
_MOST_SEGMENTS = 62
_STARTS = 3  # greedy orders to improve; one alone gets stuck more often


class Boxes:
    """Boxes with their times compressed to segments.

    Args:
        lower, upper, sizes: `[boxes]`, times and bytes; a box with `upper` before `lower` lives on from the end of time
            to its beginning.
        alignment: bytes.
        fixed: `[boxes]`, settled offsets, -1 for the others.

    Attributes:
        bound: bytes that any placement needs.
        settled_height: bytes that the settled boxes need.
    """

    def __init__(self, lower: Ints, upper: Ints, sizes: Ints, alignment: int, fixed: Ints) -> None:
        from planner.memory.packing.kernel import live_bound

        self.sizes, self.fixed = sizes, fixed
        self.rounded = -(-sizes // alignment) * alignment
        times, at = np.unique(np.concatenate((lower, upper)), return_inverse=True)
        self.length = upper.astype(np.float64) - lower
        self.length[upper < lower] += times[-1] - times[0] if len(times) else 0
        self.lower, self.upper = at[: len(sizes)].astype(np.int64), at[len(sizes) :].astype(np.int64)
        # what lives on over the end of time does so in a segment of its own
        self.segments = max(len(times) - 1 + bool((upper < lower).any()), 1)
        padding = self.rounded - sizes
        by_padding = np.argsort(-padding, kind="stable")
        self.bound = int(live_bound(self.lower, self.upper, self.rounded, padding, by_padding, self.segments))
        self.settled_height = int((fixed + sizes)[fixed >= 0].max(initial=0))

    def place(self, urgency: Floats, best_fit: bool) -> Ints:
        """Offsets when boxes are placed by descending urgency, the larger of equal ones first."""
        from planner.memory.packing.kernel import place

        # What is alive all the time cuts the others into strips; lowest is as good for it as anywhere.
        always = (self.lower > 0) | (self.upper < self.segments)
        order = np.lexsort((-self.rounded, -urgency, always))
        offsets, clash = place(order, self.lower, self.upper, self.rounded, self.fixed, self.segments, best_fit)
        if clash >= 0:
            raise StowageError(f"box {clash} meets another whose offset is settled as well; settle only one of them")
        return offsets


def lowest(boxes: Boxes, goal: int, rounds: int, between: Callable[[], None]) -> tuple[Ints, int]:
    """Offsets and height of the lowest placement found; the search ends when the height is no more than `goal`.

    `between` is called before each placement, and may raise.
    """
    size = boxes.rounded.astype(np.float64)
    early = 1.0 + boxes.segments - np.where(boxes.upper < boxes.lower, 0, boxes.lower)
    length = boxes.length
    tried: list[tuple[int, Floats, bool, Ints]] = []
    for urgency in (size * np.sqrt(length), size, size * length, early, length, np.sqrt(size) * length):
        for best_fit in (False, True):
            between()
            offsets = boxes.place(urgency, best_fit)
            height = _height(boxes, offsets)
            if height <= goal:
                return offsets, height
            tried.append((height, urgency, best_fit, offsets))
    tried.sort(key=lambda attempt: attempt[0])
    height, _, _, offsets = tried[0]
    if len(boxes.sizes) <= _FEW and boxes.segments <= _MOST_SEGMENTS and (boxes.fixed < 0).all():
        offsets, height, settled = _exact(boxes, offsets, height, goal)
        if settled:
            return offsets, height
    random = np.random.default_rng(0)
    for start in tried[:_STARTS]:
        better = _squeaky_wheel(boxes, start, goal, rounds // _STARTS, random, between)
        if better[1] < height:
            offsets, height = better
        if height <= goal:
            break
    return offsets, height


def _exact(boxes: Boxes, offsets: Ints, height: int, goal: int) -> tuple[Ints, int, bool]:
    """Lower placements than the given one, as low as the goal if need be; whether nothing better is possible."""
    from planner.memory.packing.exact import stack

    masks = np.zeros(len(boxes.sizes), np.int64)
    for box, (lower, upper) in enumerate(zip(boxes.lower.tolist(), boxes.upper.tolist(), strict=True)):
        alive = range(lower, upper) if lower <= upper else (*range(lower, boxes.segments), *range(upper))
        masks[box] = sum(1 << segment for segment in alive)
    found = np.zeros(len(masks), np.int64)
    capacity = goal
    while height > goal:
        result = stack(masks, boxes.rounded, boxes.segments, capacity, _NODES, found)
        if result == 1:
            offsets, height = found.copy(), _height(boxes, found)
        elif capacity == height - 1 or result < 0:
            return offsets, height, result == 0
        capacity = height - 1
    return offsets, height, True


def _squeaky_wheel(
    boxes: Boxes,
    start: tuple[int, Floats, bool, Ints],
    goal: int,
    rounds: int,
    random: np.random.Generator,
    between: Callable[[], None],
) -> tuple[Ints, int]:
    """Make what lies high more urgent, and place again."""
    least, urgency, best_fit, best = start
    offsets = best
    urgency = urgency.copy()
    for _ in range(rounds):
        between()
        loud = offsets + boxes.sizes > (goal + least) // 2
        urgency[loud] *= random.uniform(1.17, 1.95, int(loud.sum()))
        offsets = boxes.place(urgency, best_fit)
        height = _height(boxes, offsets)
        if height < least:
            best, least = offsets, height
        if least <= goal:
            break
    return best, least


def _height(boxes: Boxes, offsets: Ints) -> int:
    return int((offsets + boxes.sizes).max(initial=0))
