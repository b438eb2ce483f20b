"""Which decisions of the complete search are to blame for what it finds: those that moved boxes far enough up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.jit import inlined_kernel, kernel

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Boxes = NDArray[np.uint32]
Words = NDArray[np.uint64]

#: Columns of the trail, which has a row for each change of a box: the box, what it was before, the level of the
#: decision that changed it, and the row of its change before.
BOX, RELEASE, SUPPORT, GAP, LEVEL, BEFORE = range(6)


@inlined_kernel
def blame(level: int, blamed: Words, grain: int) -> None:
    """Add a level to a set of them, in which `2**grain` neighbours share a bit."""
    bit = min(level >> grain, 64 * blamed.shape[0] - 1)
    blamed[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)


@kernel
def blame_raise(box: int, offset: int, trail: Ints, last: Ints, blamed: Words, grain: int) -> None:
    """Blame the first decision after which a box could only be at an offset or above it."""
    row = last[box]
    while row >= 0 and trail[row, RELEASE] >= offset:
        row = trail[row, BEFORE]
    if row >= 0:
        blame(trail[row, LEVEL], blamed, grain)


@kernel
def blame_stack(
    begin: int, end: int, order: Boxes, room: int, size: Ints, highest: Ints, release: Ints, trail: Ints, last: Ints,
    blamed: Words, grain: int,
) -> None:  # fmt: skip
    """Blame what moved the boxes of a stack so far up that it reaches out of its room."""
    up_to = np.int64(0)
    for x in range(begin, end):
        box = order[x]
        up_to += size[box]
        if release[box] > highest[box]:
            blame_raise(box, highest[box] + 1, trail, last, blamed, grain)
            return
        if release[box] + up_to > room:
            for y in range(begin, x + 1):
                blame_raise(order[y], room - up_to + 1, trail, last, blamed, grain)
            return


@kernel
def blame_floor(
    begin: int, end: int, order: Boxes, low: int, release: Ints, trail: Ints, last: Ints, blamed: Words, grain: int
) -> None:
    """Blame what moved the boxes of a stack up to its floor, and others beyond it."""
    for x in range(begin, end):
        blame_raise(order[x], low + (release[order[x]] > low), trail, last, blamed, grain)


@kernel
def blame_below(
    box: int, low: int, pair_at: Ints, pairs: Boxes, size: Ints, placed: Bools, trail: Ints, last: Ints,
    blamed: Words, grain: int,
) -> None:  # fmt: skip
    """Blame what moved the boxes to be placed so far up that none fits below a box at an offset."""
    for p in range(pair_at[box], pair_at[box + 1]):
        other = pairs[p]
        if not placed[other] and size[other] <= low:
            blame_raise(other, low - size[other] + 1, trail, last, blamed, grain)


@kernel
def blame_support(
    box: int, top: int, pair_at: Ints, pairs: Boxes, size: Ints, placed: Bools, placed_at: Ints, trail: Ints,
    last: Ints, blamed: Words, grain: int,
) -> None:  # fmt: skip
    """Blame all that leaves a box that was left out at a gap without a box below it that ends lower than `top`."""
    row = last[box]
    while row >= 0:
        blame(trail[row, LEVEL], blamed, grain)
        row = trail[row, BEFORE]
    for p in range(pair_at[box], pair_at[box + 1]):
        other = pairs[p]
        if placed[other]:
            blame(placed_at[other], blamed, grain)
        else:
            blame_raise(other, top - size[other], trail, last, blamed, grain)


@kernel
def blame_neighbours(bits: Words, touched: Words, levels: int, blamed: Words, grain: int) -> None:
    """Blame all decisions that changed a box in some sections."""
    for level in range(levels):
        meets = False
        for w in range(bits.shape[0]):
            meets |= (touched[level, w] & bits[w]) != 0
        if meets:
            blame(level, blamed, grain)


@kernel
def unite(into: Words, row: int, sets: Words, other: int) -> None:
    """Add a row of bits to another, without a view of either: the expression takes longer to compile and to run."""
    for w in range(into.shape[1]):
        into[row, w] |= sets[other, w]


@kernel
def absolve(level: int, blamed: Words, grain: int) -> None:
    """Take a level, above which there are none, out of a set of them; it stays if it shares its bit with lower ones."""
    bit = level >> grain
    if bit << grain == level and bit < 64 * blamed.shape[0]:
        blamed[bit >> 6] &= ~(np.uint64(1) << np.uint64(bit & 63))


@kernel
def is_blamed(level: int, blamed: Words, grain: int) -> bool:
    """Whether a level, or one that shares its bit, is in a set of them."""
    bit = min(level >> grain, 64 * blamed.shape[0] - 1)
    return bool((blamed[bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1))
