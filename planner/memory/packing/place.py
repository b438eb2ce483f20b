"""Fast placement of boxes one by one: finds the addresses that are taken during a span of time.

Time is cut into segments, the leaves of a binary tree. Every node keeps two sets of taken addresses: of boxes that
are alive during *all* of its time (`whole`) and of boxes that are alive during *some* of it (`partly`). A span of time
is made up of a few nodes; the addresses taken in it are the union of their `partly` sets and of the `whole` sets above
them.
A set is a sorted linked list of disjoint intervals; because packed boxes touch, lists stay short.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.jit import kernel

Ints = NDArray[np.int64]
Nodes = NDArray[np.int32]
Spans = NDArray[np.int32]
_WHOLE, _PARTLY = 0, 1
_FREE, _USED = 0, 1


@kernel
def place(
    order: Ints, span_at: Spans, span: Spans, size: Ints, fixed: Ints, segments: int, best_fit: bool
) -> tuple[Ints, int]:
    """Give every box an offset, in the given order.

    Args:
        order: the boxes in the order of their placement.
        span_at, span: `[boxes + 1]` and `[spans, 2]`, the segments in which each box is alive, first and one past the
            last; boxes without spans or bytes get 0.
        size: `[boxes]`, bytes.
        fixed: `[boxes]`, a predetermined offset, or -1; boxes that have one are placed first.
        segments: number of time segments.
        best_fit: take the smallest gap that is large enough instead of the lowest.

    Returns:
        The offsets, and a fixed box that overlaps another fixed one, or -1.
    """
    leaves, depth = 1, 1
    while leaves < segments:
        leaves *= 2
        depth += 1
    sets = np.full((2, 2 * leaves), -1, np.int32)
    most_spans = 1
    for box in range(len(order)):
        most_spans = max(most_spans, span_at[box + 1] - span_at[box])
    nodes = np.empty((2, 2 * depth * most_spans), np.int32)
    lists = np.empty(4 * depth * most_spans, np.int32)
    pool = np.empty((4 * len(order) + 16 * depth * most_spans, 2), np.int64)
    follow = np.empty(len(pool), np.int32)
    state = np.array([-1, 0])
    offset = np.zeros(len(order), np.int64)
    clash = -1
    for is_fixed in (True, False):
        for box in order:
            if (fixed[box] >= 0) != is_fixed:
                continue
            offset[box] = max(fixed[box], 0)
            if size[box] == 0 or span_at[box] == span_at[box + 1]:
                continue
            inside_count, around_count = 0, 0
            for q in range(span_at[box], span_at[box + 1]):
                inside_count, around_count = _nodes_of(
                    span[q, 0], span[q, 1], leaves, nodes, inside_count, around_count
                )
            inside, around = nodes[0, :inside_count], nodes[1, :around_count]
            count = _lists_of(inside, around, sets, lists)
            if is_fixed:
                if _lowest_gap(lists, count, fixed[box], size[box], pool, follow)[0] != fixed[box]:
                    clash = box
            elif best_fit:
                offset[box] = _smallest_gap(lists, count, size[box], pool, follow)
            else:
                offset[box] = _lowest_gap(lists, count, 0, size[box], pool, follow)[0]
            if state[_USED] + 6 * depth * most_spans > len(pool):
                pool = np.concatenate((pool, np.empty_like(pool)))
                follow = np.concatenate((follow, np.empty_like(follow)))
            low, high = offset[box], offset[box] + size[box]
            for node in inside:
                _unite(sets[_WHOLE], node, low, high, pool, follow, state)
                _unite(sets[_PARTLY], node, low, high, pool, follow, state)
            for node in around:
                _unite(sets[_PARTLY], node, low, high, pool, follow, state)
    return offset, clash


@kernel
def _nodes_of(lower: int, upper: int, leaves: int, nodes: Nodes, inside: int, around: int) -> tuple[int, int]:
    """Append the fewest nodes that make up a span, and all nodes above them; returns how many there are of each."""
    left, right = lower + leaves, upper + leaves
    first, last = left, right - 1
    while left < right:
        if left & 1:
            nodes[0, inside] = left
            inside += 1
            left += 1
        if right & 1:
            right -= 1
            nodes[0, inside] = right
            inside += 1
        left >>= 1
        right >>= 1
    # A node above them contains one end of the span and reaches out of it.
    width = 1
    while first > 1:
        first, last, width = first >> 1, last >> 1, 2 * width
        if first * width - leaves < lower or (first + 1) * width - leaves > upper:
            nodes[1, around] = first
            around += 1
        if last != first and (last * width - leaves < lower or (last + 1) * width - leaves > upper):
            nodes[1, around] = last
            around += 1
    return inside, around


@kernel
def _lists_of(inside: Nodes, around: Nodes, sets: Nodes, lists: Nodes) -> int:
    """Collect the heads of the lists that together hold what is taken in a span; returns how many."""
    count = 0
    for node in inside:
        if sets[_PARTLY, node] >= 0:
            lists[count] = sets[_PARTLY, node]
            count += 1
    for node in around:
        if sets[_WHOLE, node] >= 0:
            lists[count] = sets[_WHOLE, node]
            count += 1
    return count


@kernel
def _lowest_gap(lists: Nodes, count: int, address: int, size: int, pool: Ints, follow: Nodes) -> tuple[int, int]:
    """The lowest address from `address` on with `size` free bytes, and the end of that gap (-1: open)."""
    raised = True
    while raised:
        raised = False
        for k in range(count):
            interval = lists[k]
            while interval >= 0 and pool[interval, 1] <= address:
                interval = follow[interval]
            if interval >= 0 and pool[interval, 0] < address + size:
                address = pool[interval, 1]
                interval = follow[interval]
                raised = True
            lists[k] = interval
    gap_end = -1
    for k in range(count):
        if lists[k] >= 0 and (gap_end < 0 or pool[lists[k], 0] < gap_end):
            gap_end = pool[lists[k], 0]
    return address, gap_end


@kernel
def _smallest_gap(lists: Nodes, count: int, size: int, pool: Ints, follow: Nodes) -> int:
    """The address of the smallest gap of at least `size` bytes; of equal ones the lowest."""
    best, least, address = -1, 0, 0
    while True:
        address, gap_end = _lowest_gap(lists, count, address, size, pool, follow)
        if gap_end < 0:
            return address if best < 0 else best
        if best < 0 or gap_end - address < least:
            best, least = address, gap_end - address
            if least == size:
                return best
        address = gap_end


@kernel
def _unite(heads: Nodes, node: int, low: int, high: int, pool: Ints, follow: Nodes, state: Ints) -> None:
    """Add an interval to the set of a node, joining it with what it touches."""
    before, at = -1, heads[node]
    while at >= 0 and pool[at, 1] < low:
        before, at = at, follow[at]
    if at >= 0 and pool[at, 0] <= high:
        pool[at, 0] = min(pool[at, 0], low)
        high = max(high, pool[at, 1])
        after = follow[at]
        while after >= 0 and pool[after, 0] <= high:
            high = max(high, pool[after, 1])
            joined, after = after, follow[after]
            follow[joined] = state[_FREE]
            state[_FREE] = joined
        pool[at, 1] = high
        follow[at] = after
        return
    if state[_FREE] >= 0:
        new = state[_FREE]
        state[_FREE] = follow[new]
    else:
        new = state[_USED]
        state[_USED] += 1
    pool[new, 0], pool[new, 1] = low, high
    follow[new] = at
    if before < 0:
        heads[node] = new
    else:
        follow[before] = new


@kernel
def live_bound(span_at: Spans, span: Spans, size: Ints, padding: Ints, by_padding: Ints, segments: int) -> int:
    """A lower bound on the height: the most bytes alive at once, less the padding of whichever box is on top.

    Args:
        span_at, span: `[boxes + 1]` and `[spans, 2]`, as in `place`.
        size: `[boxes]`, bytes, rounded up to the alignment.
        padding: `[boxes]`, bytes that the rounding added.
        by_padding: boxes by descending padding.
        segments: number of time segments.
    """
    live = np.zeros(segments + 1, np.int64)
    for box in range(len(size)):
        for q in range(span_at[box], span_at[box + 1]):
            live[span[q, 0]] += size[box]
            live[span[q, 1]] -= size[box]
    # Each segment is filled once, by the live box with the most padding; `next_unfilled` skips filled segments.
    top_padding = np.zeros(segments, np.int64)
    next_unfilled = np.arange(segments + 1)
    for box in by_padding:
        if padding[box] == 0:
            break
        for q in range(span_at[box], span_at[box + 1]):
            at = span[q, 0]
            while at < span[q, 1]:
                if next_unfilled[at] == at:
                    top_padding[at] = padding[box]
                    next_unfilled[at] = at + 1
                next_unfilled[at] = next_unfilled[next_unfilled[at]]
                at = next_unfilled[at]
    bound = 0
    alive = 0
    for segment in range(segments):
        alive += live[segment]
        bound = max(bound, alive - top_padding[segment])
    return bound
