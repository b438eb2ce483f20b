"""Which section a node of the complete search looks at, and what it tries there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.jit import inlined_kernel, kernel
from planner.memory.packing.complete.blame import blame, blame_below, blame_floor, blame_neighbours, blame_raise
from planner.memory.packing.complete.stacks import is_repeated

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Indices = NDArray[np.int32]
Boxes = NDArray[np.uint32]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]

#: How a node chooses its section: by the lowest floor, the fewest children (then the lowest floor or the least slack),
#: the fewest children for its failures, the most bytes that are still to be placed, or the fewest children times the
#: height below these bytes if they are at the top.
LOWEST, FEWEST, TIGHTEST, FAILING, FULLEST, CROWDED = range(6)
#: In place of a child: none of the boxes that may be at the floor of the section is there.
SKIP = -1
_FAR = 1 << 62


@inlined_kernel
def _priority(choice: int, children: int, low: int, slack: int, left: int, weight: float) -> tuple[float, float]:
    """What the chosen section has least of, and second."""
    first, second = float(low), float(children)
    if choice == FEWEST:
        first, second = float(children), float(low)
    elif choice == TIGHTEST:
        first, second = float(children), float(slack)
    elif choice == FAILING:
        first, second = children / weight, float(low)
    elif choice == FULLEST:
        first = -float(left)
    elif choice == CROWDED:
        first, second = float(children) * (low + slack), float(low)
    return first, second


@kernel
def choose_section(
    choice: int, section_at: Ints, end: Ints, order: Boxes, total: Ints, lowest_top: Ints, floor: Ints, count: Ints,
    choices: Ints, room: Ints, weights: Floats, release: Ints, span_at: Indices, span: Indices, lowest_beside: Ints,
    known_at: Ints, node: int,
) -> int:  # fmt: skip
    """The section to look at: nothing fits below the boxes at its floor any more.

    Args:
        choice: how it is chosen.
        section_at, end, order, total, lowest_top, floor, count, choices: the stacks, see `restack`.
        room, weights, release, span_at, span: see `place_completely`.
        lowest_beside, known_at: `[boxes]`, the lowest end that any box can have in the life of each, and in which node
            that was found out; updated.
        node: number of this node.
    """
    best, best_first, best_second = -1, 0.0, 0.0
    for s in range(room.shape[0]):
        if count[s] == 0:
            continue
        low, left, at_floor = floor[s], total[end[s] - 1], end[s] - count[s]
        slack = room[s] - low - left
        first, second = _priority(choice, choices[s], low, slack, left, weights[s])
        if best >= 0 and (first > best_first or (first == best_first and second >= best_second)):
            continue
        # the lowest that any box can be above a gap: one that is higher up already, or on one that comes later
        beyond = np.int64(_FAR)
        if at_floor > section_at[s]:
            beyond = release[order[at_floor - 1]]
        for x in range(at_floor, end[s]):
            box = order[x]
            if known_at[box] != node:
                known_at[box] = node
                lowest = np.int64(_FAR)
                for q in range(span_at[box], span_at[box + 1]):
                    for t in range(span[q, 0], span[q, 1]):
                        lowest = min(lowest, lowest_top[end[t] - 1])
                lowest_beside[box] = lowest
            beyond = min(beyond, lowest_beside[box])
            if beyond <= low:
                break
        if beyond <= low:
            continue
        if beyond - low <= slack:
            first, second = _priority(choice, choices[s] + 1, low, slack, left, weights[s])
            if best >= 0 and (first > best_first or (first == best_first and second >= best_second)):
                continue
        best, best_first, best_second = s, first, second
    return best


@kernel
def list_children(
    s: int, at: int, by_bytes_left: bool, children: Indices, key: Ints, section_at: Ints, end: Ints, order: Boxes,
    total: Ints, floor: Ints, count: Ints, room: Ints, size: Ints, fixed: Ints, alike: Indices, rank: Ints,
    placed: Bools, offsets: Ints, release: Ints, support: Ints, span_at: Indices, span: Indices, pair_at: Ints,
    pairs: Boxes, bits: Words, level: int, placed_at: Ints, trail: Ints, last: Ints, touched: Words, read: Words,
    blamed: Words, grain: int,
) -> int:  # fmt: skip
    """List what there is to try in a section, the best first, with the decisions that leave nothing else.

    Args:
        s: the section.
        at: where the list begins.
        children: `[at + boxes + 1]` or longer, filled with the list.
        key: `[boxes]`, for a while.
        level, touched: how many decisions have been made, and `[levels, words]`, the sections that each has changed.
        read: `[words]`, the sections that were read; updated.
        blamed, grain: the levels of the decisions; updated, see `blame`.

    Returns:
        Where the list ends.
    """
    low, stop = floor[s], at
    is_full = room[s] - low <= total[end[s] - 1]
    if is_full:
        blame_floor(section_at[s], end[s], order, low, release, trail, last, blamed, grain)
    for x in range(end[s] - count[s], end[s]):
        box = order[x]
        for w in range(read.shape[0]):
            read[w] |= bits[box, w]
        most, nothing_above = np.int64(0), True
        for q in range(span_at[box], span_at[box + 1]):
            for t in range(span[q, 0], span[q, 1]):
                left = total[end[t] - 1]
                nothing_above &= left == size[box]
                most = max(most, left)
        if fixed[box] >= 0 or nothing_above:
            if fixed[box] >= 0:
                blame_below(box, low, pair_at, pairs, size, placed, trail, last, blamed, grain)
            elif not is_full:
                blame_neighbours(bits[box], touched, level, blamed, grain)
            children[at] = box
            return at + 1
        if is_repeated(box, size, alike, placed, offsets, release, support):
            if support[box] < low:
                blame_neighbours(bits[box], touched, level, blamed, grain)
            other = alike[box]
            while other != box:
                if not placed[other]:
                    blame_raise(other, low, trail, last, blamed, grain)
                elif offsets[other] + size[other] == low:
                    blame(placed_at[other], blamed, grain)
                other = alike[other]
            continue
        blame_below(box, low, pair_at, pairs, size, placed, trail, last, blamed, grain)
        key[box] = most if by_bytes_left else 0
        y = stop
        while y > at:
            other = children[y - 1]
            if key[other] > key[box] or (key[other] == key[box] and rank[other] < rank[box]):
                break
            children[y] = other
            y -= 1
        children[y] = box
        stop += 1
    if not is_full:
        children[stop] = SKIP
        stop += 1
    return stop
