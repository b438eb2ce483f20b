"""Search for an order of placing boxes that gives low offsets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.cancel import CancelToken
from planner.errors import StowageError

Ints = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
#: Exact placement is tried for up to `_MAX_EXACT_BOXES` boxes, within `_NODES` steps.
_MAX_EXACT_BOXES, _NODES = 12, 20_000
_MOST_SEGMENTS = 62
_ORDERS_IMPROVED = 3  # greedy orders to improve; one alone gets stuck more often


class PackingProblem:
    """Boxes with their times compressed to segments.

    Args:
        lower, upper, sizes: `[boxes]`, times and bytes; a box with `upper` before `lower` wraps around the end of time.
        alignment: bytes.
        fixed: `[boxes]`, predetermined offsets, -1 for the others.

    Attributes:
        bound: bytes that any placement needs.
        fixed_peak: bytes that the fixed boxes need.
    """

    def __init__(self, lower: Ints, upper: Ints, sizes: Ints, alignment: int, fixed: Ints) -> None:
        from planner.memory.packing.kernel import live_bound

        self.sizes, self.fixed = sizes, fixed
        self.rounded = -(-sizes // alignment) * alignment
        times, at = np.unique(np.concatenate((lower, upper)), return_inverse=True)
        self.length = upper.astype(np.float64) - lower
        self.length[upper < lower] += times[-1] - times[0] if len(times) else 0
        self.lower, self.upper = at[: len(sizes)].astype(np.int64), at[len(sizes) :].astype(np.int64)
        # wrapping around the end of time takes a segment of its own
        self.segments = max(len(times) - 1 + bool((upper < lower).any()), 1)
        padding = self.rounded - sizes
        by_padding = np.argsort(-padding, kind="stable")
        self.bound = int(live_bound(self.lower, self.upper, self.rounded, padding, by_padding, self.segments))
        self.fixed_peak = int((fixed + sizes)[fixed >= 0].max(initial=0))

    def place(self, urgency: Floats, best_fit: bool) -> Ints:
        """Offsets when boxes are placed by descending urgency, the larger of equal ones first."""
        from planner.memory.packing.kernel import place

        # A box that is always alive would split the space of the others; placed first, it is at the bottom.
        not_always_alive = (self.lower > 0) | (self.upper < self.segments)
        order = np.lexsort((-self.rounded, -urgency, not_always_alive))
        offsets, clash = place(order, self.lower, self.upper, self.rounded, self.fixed, self.segments, best_fit)
        if clash >= 0:
            raise StowageError(f"box {clash} overlaps another whose offset is fixed as well; fix only one of them")
        return offsets


def lowest(boxes: PackingProblem, goal: int, rounds: int, stop: CancelToken) -> tuple[Ints, int]:
    """Offsets and height of the lowest placement found; the search ends when the height is no more than `goal`.

    `stop` is checked before each placement.
    """
    size = boxes.rounded.astype(np.float64)
    by_start = 1.0 + boxes.segments - np.where(boxes.upper < boxes.lower, 0, boxes.lower)
    length = boxes.length
    attempts: list[tuple[int, Floats, bool, Ints]] = []
    for urgency in (size * np.sqrt(length), size, size * length, by_start, length, np.sqrt(size) * length):
        for best_fit in (False, True):
            stop.check()
            offsets = boxes.place(urgency, best_fit)
            peak = _peak(boxes, offsets)
            if peak <= goal:
                return offsets, peak
            attempts.append((peak, urgency, best_fit, offsets))
    attempts.sort(key=lambda attempt: attempt[0])
    peak, _, _, offsets = attempts[0]
    if len(boxes.sizes) <= _MAX_EXACT_BOXES and boxes.segments <= _MOST_SEGMENTS and (boxes.fixed < 0).all():
        offsets, peak, proven = _exact(boxes, offsets, peak, goal)
        if proven:
            return offsets, peak
    random = np.random.default_rng(0)
    for start in attempts[:_ORDERS_IMPROVED]:
        better = _squeaky_wheel(boxes, start, goal, rounds // _ORDERS_IMPROVED, random, stop)
        if better[1] < peak:
            offsets, peak = better
        if peak <= goal:
            break
    return offsets, peak


def _exact(boxes: PackingProblem, offsets: Ints, peak: int, goal: int) -> tuple[Ints, int, bool]:
    """Look for placements below the given one, down to the goal; also whether nothing better is possible."""
    from planner.memory.packing.exact import place_exactly

    masks = np.zeros(len(boxes.sizes), np.int64)
    for box, (lower, upper) in enumerate(zip(boxes.lower.tolist(), boxes.upper.tolist(), strict=True)):
        alive = range(lower, upper) if lower <= upper else (*range(lower, boxes.segments), *range(upper))
        masks[box] = sum(1 << segment for segment in alive)
    found = np.zeros(len(masks), np.int64)
    capacity = goal
    while peak > goal:
        result = place_exactly(masks, boxes.rounded, boxes.segments, capacity, _NODES, found)
        if result == 1:
            offsets, peak = found.copy(), _peak(boxes, found)
        elif capacity == peak - 1 or result < 0:
            return offsets, peak, result == 0
        capacity = peak - 1
    return offsets, peak, True


def _squeaky_wheel(
    boxes: PackingProblem,
    start: tuple[int, Floats, bool, Ints],
    goal: int,
    rounds: int,
    random: np.random.Generator,
    stop: CancelToken,
) -> tuple[Ints, int]:
    """Make boxes at high offsets more urgent and place all again, repeatedly."""
    least, urgency, best_fit, best = start
    offsets = best
    urgency = urgency.copy()
    for _ in range(rounds):
        stop.check()
        high = offsets + boxes.sizes > (goal + least) // 2
        urgency[high] *= random.uniform(1.17, 1.95, int(high.sum()))
        offsets = boxes.place(urgency, best_fit)
        peak = _peak(boxes, offsets)
        if peak < least:
            best, least = offsets, peak
        if least <= goal:
            break
    return best, least


def _peak(boxes: PackingProblem, offsets: Ints) -> int:
    return int((offsets + boxes.sizes).max(initial=0))
