"""What the complete search has left to place in each section, kept sorted while boxes are placed and taken back.

The *stack* of a section has its boxes that are still to be placed by their lowest possible offsets, the highest first;
behind these are the placed ones, the last first. A box that is moved up leaves the stack above its new offset as it
was, so only the part below that is sorted anew.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.jit import inlined_kernel, kernel

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Indices = NDArray[np.int32]
Boxes = NDArray[np.uint32]
Words = NDArray[np.uint64]
_FAR = 1 << 62


@kernel
def is_repeated(
    box: int, size: Ints, alike: Indices, placed: Bools, offsets: Ints, release: Ints, support: Ints
) -> bool:
    """Whether a box at its lowest possible offset repeats a placement of others, or nothing below it holds it up.

    Of boxes alike, those of equal size are placed in their order, and so are two that touch.
    """
    low = release[box]
    repeats = bool(support[box] < low)
    other = alike[box]
    while other != box and not repeats:
        if placed[other]:
            repeats = bool(other > box and offsets[other] + size[other] == low)
        else:
            repeats = bool(other < box and size[other] == size[box] and release[other] == low)
        other = alike[other]
    return repeats


@inlined_kernel
def _sort(begin: int, first: int, end: int, order: Boxes, release: Ints, buffer: Boxes) -> int:
    """Sort a part of a stack, which is sorted up to `first`.

    Returns:
        Where it has changed.
    """
    kept, moved, last = first, 0, release[order[first - 1]]
    for x in range(first, end):
        box = order[x]
        value = release[box]
        if value <= last:
            order[kept], last = box, value
            kept += 1
        else:
            y = moved
            while y > 0 and release[buffer[y - 1]] < value:
                buffer[y] = buffer[y - 1]
                y -= 1
            buffer[y] = box
            moved += 1
    x = end - 1
    while moved > 0:
        value = release[buffer[moved - 1]]
        if kept > begin and release[order[kept - 1]] < value:
            kept -= 1
            order[x] = order[kept]
        else:
            moved -= 1
            order[x] = buffer[moved]
        x -= 1
    return kept


@kernel
def restack(
    changed: Words, below: Ints, suspect: int, section_at: Ints, end: Ints, order: Boxes, total: Ints,
    lowest_top: Ints, floor: Ints, count: Ints, choices: Ints, room: Ints, size: Ints, highest: Ints, alike: Indices,
    placed: Bools, offsets: Ints, release: Ints, support: Ints, buffer: Boxes, saved: Boxes, records: Ints,
    saves: int, repeats: Bools, repeats_at: Ints, node: int,
) -> tuple[int, int]:  # fmt: skip
    """Sort the stacks of the changed sections, until one does not stay inside its room.

    Args:
        changed: `[words]`, the sections as bits; those that are done are removed.
        below: `[sections]`, no lowest possible offset has changed that was or is above this.
        suspect: the section to begin with, if it has changed: it failed before.
        section_at, end, order: the boxes of each section, and where those end that are to be placed.
        total, lowest_top: `[entries]`, the sizes from the top of the stack to a box, and the lowest end that any of
            these boxes can have; updated, as all below.
        floor: `[sections]`, the lowest possible offset of any box to be placed; -1 if there are none.
        count: `[sections]`, how many have it.
        choices: `[sections]`, how many of these a search has to try there.
        room, size, highest, alike, offsets: see `place_completely`.
        placed, release, support: `[boxes]`, whether each is placed; if not, the lowest offset that it can have; and
            the highest end of the placed boxes below it.
        buffer: `[boxes]`, for a while.
        saved, records, saves: the part of the order of each stack that was changed, as it was; the section, where the
            part begins, where it is saved, and how long it is, `[most, 4]`; and how many. With no place left, nothing
            is saved: `restack` then has more to sort.
        repeats, repeats_at: `[boxes]`, whether each repeats a placement, and in which node that was found out.
        node: number of this node.

    Returns:
        The section or -1, and the number of records.
    """
    saved_entries = records[saves - 1, 2] + records[saves - 1, 3] if saves > 0 else 0
    one = np.uint64(1)
    for w in range(-1, changed.shape[0]):
        word, s = changed[max(w, 0)], 64 * w
        if w < 0:
            s = suspect
            word = (changed[s >> 6] >> np.uint64(s & 63)) & one
        while word:
            if not word & one:
                word >>= one
                s += 1
                continue
            begin, first = section_at[s], end[s]
            while first > begin and release[order[first - 1]] <= below[s]:
                first -= 1
            # most stacks stay sorted, for which one pass is enough
            up_to, low_top, low = np.int64(0), np.int64(_FAR), np.int64(-1)
            if first > begin:
                up_to, low_top, low = total[first - 1], lowest_top[first - 1], release[order[first - 1]]
            last, x = np.int64(_FAR), first
            while x < end[s]:
                box = order[x]
                low = release[box]
                if low > last:
                    if saves < records.shape[0] and saved_entries + end[s] - first <= saved.shape[0]:
                        records[saves, 0], records[saves, 1], records[saves, 2] = s, first, saved_entries
                        records[saves, 3] = end[s] - first
                        for y in range(first, end[s]):
                            saved[saved_entries] = order[y]
                            saved_entries += 1
                        saves += 1
                    first = _sort(first, x, end[s], order, release, buffer)
                    up_to, low_top = np.int64(0), np.int64(_FAR)
                    if first > begin:
                        up_to, low_top = total[first - 1], lowest_top[first - 1]
                    last, x = np.int64(_FAR), first
                    continue
                last = low
                up_to += size[box]
                if low > highest[box] or low + up_to > room[s]:
                    return s, saves
                low_top = min(low_top, low + size[box])
                total[x], lowest_top[x] = up_to, low_top
                x += 1
            options, x = 0, end[s]
            while x > begin and release[order[x - 1]] == low:
                x -= 1
                box = order[x]
                if repeats_at[box] != node:
                    repeats_at[box] = node
                    repeats[box] = is_repeated(box, size, alike, placed, offsets, release, support)
                if not repeats[box]:
                    options += 1
            floor[s], count[s], choices[s], below[s] = low, end[s] - x, options, -1
            changed[s >> 6] ^= one << np.uint64(s & 63)
            word >>= one
            s += 1
    return -1, saves


@kernel
def mark(touched: Words, top: int, changed: Words, below: Ints) -> None:
    """Note that boxes of some sections have changed, none of which was or is above an offset."""
    for w in range(touched.shape[0]):
        word, s = touched[w], 64 * w
        changed[w] |= word
        while word:
            if word & np.uint64(1):
                below[s] = max(below[s], top)
            word >>= np.uint64(1)
            s += 1


@kernel
def take(box: int, span_at: Indices, span: Indices, end: Ints, order: Boxes, place: Boxes) -> None:
    """Move a box that is placed out of the stacks."""
    for q in range(span_at[box], span_at[box + 1]):
        for s in range(span[q, 0], span[q, 1]):
            end[s] -= 1
            x, moved = end[s], order[end[s]]
            while moved != box:  # it is low, so near the end
                x -= 1
                order[x], moved = moved, order[x]
            order[end[s]] = box
            place[end[s]] = x


@kernel
def put_back(box: int, span_at: Indices, span: Indices, end: Ints, order: Boxes, place: Boxes) -> None:
    """Undo the last `take` that was not undone yet."""
    for q in range(span_at[box], span_at[box + 1]):
        for s in range(span[q, 0], span[q, 1]):
            for x in range(end[s], place[end[s]], -1):
                order[x] = order[x - 1]
            order[place[end[s]]] = box
            end[s] += 1


@kernel
def restore(first: int, saves: int, records: Ints, saved: Boxes, order: Boxes) -> None:
    """Give the stacks of the records from `first` on the order back that they had before."""
    for r in range(saves - 1, first - 1, -1):
        begin, at = records[r, 1], records[r, 2]
        for x in range(records[r, 3]):
            order[begin + x] = saved[at + x]
