"""Complete search for a placement below a height, which finds one or proves that there is none.

Only placements are looked for in which every box is at the bottom, fixed, or on top of another that is alive with it;
if there is a placement, then pushing its boxes down makes one like that. Boxes are placed from below. A node of the
search looks at one *section* (boxes that are all alive at one time) below whose lowest possible offset nothing fits any
more: either one of the boxes that may be there is there, or none is (a gap). A box that is left out at a gap must later
get another one below it, which raises its lowest possible offset.

A failure comes with the decisions that its proof needs: the first ones that moved each box of a stack as far up as the
proof takes it to be. The search goes back past all others (conflict-directed backjumping: Prosser, Computational
Intelligence 1993). It also comes with the sections that the proof has read, whose boxes alone then have no placement.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.jit import kernel
from planner.memory.packing.complete.blame import (
    BEFORE,
    BOX,
    GAP,
    LEVEL,
    RELEASE,
    SUPPORT,
    absolve,
    blame_stack,
    blame_support,
    is_blamed,
    unite,
)
from planner.memory.packing.complete.branching import SKIP, choose_section, list_children
from planner.memory.packing.complete.sections import Sections
from planner.memory.packing.complete.stacks import mark, put_back, restack, restore, take

Ints = NDArray[np.int64]
Indices = NDArray[np.int32]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]

#: More levels than this share bits in the sets of those to blame; and how many boxes and stacks are kept to give stacks
#: the order back that they had.
_MOST_BITS, _MOST_SAVED, _MOST_RECORDS = 8192, 4_000_000, 200_000
#: Columns of the levels: the next child, and where the children end, in their list; the floor and section that a level
#: looks at; how long the trail and the records were; how high its decision moved any box.
_NEXT, _STOP, _FLOOR, _SECTION, _TRAIL, _RECORDS, _TOP = range(7)


@kernel
def place_completely(
    size: Ints,
    highest: Ints,
    fixed: Ints,
    alike: Indices,
    sections: Sections,
    room: Ints,
    rank: Ints,
    choice: int,
    by_bytes_left: bool,
    limit: int,
    weights: Floats,
    offsets: Ints,
    proof: Words,
    flag: Ints,
) -> tuple[int, int]:
    """Place boxes one on another below their highest offsets.

    Args:
        size: `[boxes]`, in any unit.
        highest: `[boxes]`, the highest offset that each may have.
        fixed: `[boxes]`, a predetermined offset, or -1.
        alike: `[boxes]`, the next box with the same life and the same room above it, in a ring.
        sections: the sections in which each box is alive.
        room: `[sections]`, a height that no box of the section can reach beyond.
        rank: `[boxes]`, which of the candidates of a section to try first.
        choice: how a section is chosen.
        by_bytes_left: try the candidate first in whose life the most is still to be placed, then by rank.
        limit: how many nodes to visit at most.
        weights: `[sections]`, how often each failed; updated.
        offsets: `[boxes]`, filled if they fit.
        proof: `[words]`, the sections whose boxes prove that they do not, as bits; filled if so.
        flag: `[1]`, ends the search when it is not 0.

    Returns:
        1 if they fit, 0 if they do not, -1 if that was not decided; and the number of visited nodes.
    """
    n, section_count, words = size.shape[0], room.shape[0], sections.bits.shape[1]
    span_at, span, bits = sections.span_at, sections.span, sections.bits
    pair_at, pairs, section_at = sections.pair_at, sections.pairs, sections.section_at
    release, support, gap = np.maximum(fixed, 0), np.zeros(n, np.int64), np.full(n, -1, np.int64)
    placed, placed_at = np.zeros(n, np.bool_), np.zeros(n, np.int64)
    skipped, is_listed, skips = np.empty(n, np.int32), np.zeros(n, np.bool_), 0
    below_it = np.arange(n, dtype=np.int32)  # of a skipped box, one that could get below it when last looked for
    # the stacks; numbers that kernels are called with are no literals, or these would be compiled for both
    order, end, place = sections.in_section.copy(), section_at[1:].copy(), sections.in_section.copy()
    total, lowest_top = np.zeros(len(order), np.int64), np.zeros(len(order), np.int64)
    floor, count = np.zeros(section_count, np.int64), np.zeros(section_count, np.int64)
    choices, below = np.zeros(section_count, np.int64), np.full(section_count, np.int64(1) << 62)
    changed, suspect = np.zeros(words, np.uint64), int(np.int64(0))
    for box in range(n):
        changed |= bits[box]
    buffer, repeats, repeats_at = np.empty(n, np.uint32), np.zeros(n, np.bool_), np.full(n, -1, np.int64)
    saved, records = np.empty(_MOST_SAVED, np.uint32), np.empty((_MOST_RECORDS, 4), np.int64)
    record_count = int(np.int64(0))
    # the levels
    levels = np.zeros((n + 64, 7), np.int64)
    read, touched = np.zeros((n + 64, words), np.uint64), np.zeros((n + 64, words), np.uint64)
    grain = int(np.int64(0))  # so many levels share a bit, as a power of two: dividing takes long
    while (2 * n + 64) >> grain > _MOST_BITS:
        grain += 1
    blamed = np.zeros((n + 64, ((2 * n + 64) >> grain) // 64 + 1), np.uint64)
    children, key = np.empty(4 * n + 64, np.int32), np.empty(n, np.int64)
    lowest_beside, known_at = np.zeros(n, np.int64), np.full(n, -1, np.int64)
    trail, changes, last = np.empty((8 * n + 64, 6), np.int64), 0, np.full(n, -1, np.int64)
    to_place, nodes, level = n, int(np.int64(0)), -1
    while True:
        failed = False
        # a skipped box without a new supporter is above the lowest top of the boxes that may get below it
        raised = skips > 0
        while raised and not failed:
            raised = False
            x = 0
            while x < skips:
                box = skipped[x]
                if gap[box] < 0:
                    skips -= 1
                    skipped[x] = skipped[skips]
                    is_listed[box] = False
                    continue
                x += 1
                if placed[box] or support[box] > gap[box]:
                    continue
                other = below_it[box]
                if not placed[other] and release[other] + size[other] <= release[box]:
                    continue
                lowest = np.int64(1) << 62
                for p in range(pair_at[box], pair_at[box + 1]):
                    other = pairs[p]
                    if not placed[other] and release[other] + size[other] < lowest:
                        lowest = release[other] + size[other]
                        if lowest <= release[box]:
                            below_it[box] = other
                            break
                if lowest <= release[box]:
                    continue
                unite(read, level, bits, box)
                blame_support(
                    box, int(lowest), pair_at, pairs, size, placed, placed_at, trail, last, blamed[level], grain
                )
                if lowest > highest[box]:
                    failed = True
                    break
                if changes == trail.shape[0]:
                    trail = np.concatenate((trail, np.empty_like(trail)))
                trail[changes, BOX], trail[changes, RELEASE], trail[changes, SUPPORT] = box, release[box], support[box]
                trail[changes, GAP], trail[changes, LEVEL], trail[changes, BEFORE] = gap[box], level, last[box]
                last[box] = changes
                changes += 1
                release[box] = lowest
                unite(touched, level, bits, box)
                levels[level, _TOP] = max(levels[level, _TOP], lowest)
                mark(bits[box], int(lowest), changed, below)
                raised = True
        if not failed:
            # what is left of each section must not reach out of the room
            failing, record_count = restack(
                changed, below, suspect, section_at, end, order, total, lowest_top, floor, count, choices, room, size,
                highest, alike, placed, offsets, release, support, buffer, saved, records, record_count, repeats,
                repeats_at, nodes,
            )  # fmt: skip
            if failing >= 0:
                failed, suspect = True, failing
                weights[failing] += 1.0
                bit = np.uint64(1) << np.uint64(failing & 63)
                if level < 0:
                    proof[:] = 0
                    proof[failing >> 6] = bit
                    return 0, nodes
                read[level, failing >> 6] |= bit
                blame_stack(
                    section_at[failing], end[failing], order, room[failing], size, highest, release, trail, last,
                    blamed[level], grain,
                )  # fmt: skip
        if not failed:
            if to_place == 0:
                return 1, nodes
            best = choose_section(
                choice, section_at, end, order, total, lowest_top, floor, count, choices, room, weights, release,
                span_at, span, lowest_beside, known_at, nodes,
            )  # fmt: skip
            level += 1
            if level == levels.shape[0]:
                levels = np.concatenate((levels, np.zeros_like(levels)))
                read = np.concatenate((read, np.zeros_like(read)))
                touched = np.concatenate((touched, np.zeros_like(touched)))
                blamed = np.concatenate((blamed, np.zeros_like(blamed)))
            begin = levels[level - 1, _STOP] if level > 0 else 0
            if begin + n + 1 > children.shape[0]:
                children = np.concatenate((children, np.empty_like(children)))
            read[level], blamed[level] = 0, 0
            levels[level, _STOP] = list_children(
                best, begin, by_bytes_left, children, key, section_at, end, order, total, floor, count, room, size,
                fixed, alike, rank, placed, offsets, release, support, span_at, span, pair_at, pairs, bits, level,
                placed_at, trail, last, touched, read[level], blamed[level], grain,
            )  # fmt: skip
            levels[level, _NEXT], levels[level, _FLOOR], levels[level, _SECTION] = begin, floor[best], best
            levels[level, _TRAIL], levels[level, _RECORDS] = changes, record_count
        while failed or levels[level, _NEXT] == levels[level, _STOP]:
            if not failed:  # all children of this node failed: so has the decision before it
                level -= 1
                if level < 0:
                    proof[:] = read[0]
                    return 0, nodes
            restore(levels[level, _RECORDS], record_count, records, saved, order)
            record_count = levels[level, _RECORDS]
            box = children[levels[level, _NEXT] - 1]
            if box != SKIP:
                placed[box] = False
                put_back(box, span_at, span, end, order, place)
                to_place += 1
            while changes > levels[level, _TRAIL]:
                changes -= 1
                moved = trail[changes, BOX]
                release[moved], last[moved] = trail[changes, RELEASE], trail[changes, BEFORE]
                support[moved], gap[moved] = trail[changes, SUPPORT], trail[changes, GAP]
            mark(touched[level], levels[level, _TOP], changed, below)
            if not failed:
                absolve(level + 1, blamed[level + 1], grain)
                if is_blamed(level, blamed[level + 1], grain):
                    unite(read, level, read, level + 1)
                    unite(blamed, level, blamed, level + 1)
                else:
                    read[level], blamed[level] = read[level + 1], blamed[level + 1]
                    levels[level, _NEXT] = levels[level, _STOP]
            failed = False
        nodes += 1
        if nodes > limit or flag[0] != 0:
            return -1, nodes
        box, low, s = children[levels[level, _NEXT]], levels[level, _FLOOR], levels[level, _SECTION]
        levels[level, _NEXT] += 1
        touched[level] = 0
        if changes + n > trail.shape[0]:
            trail = np.concatenate((trail, np.empty_like(trail)))
        if box != SKIP:
            placed[box], placed_at[box], offsets[box] = True, level, low
            take(box, span_at, span, end, order, place)
            to_place -= 1
            unite(touched, level, bits, box)
            top = low + size[box]
            levels[level, _TOP] = top
            for p in range(pair_at[box], pair_at[box + 1]):
                other = pairs[p]
                if placed[other] or support[other] >= top:
                    continue
                trail[changes, BOX], trail[changes, RELEASE] = other, release[other]
                trail[changes, SUPPORT], trail[changes, GAP] = support[other], gap[other]
                trail[changes, LEVEL], trail[changes, BEFORE] = level, last[other]
                last[other] = changes
                changes += 1
                support[other], release[other] = top, max(release[other], top)
                unite(touched, level, bits, other)
        else:
            levels[level, _TOP] = low
            for x in range(section_at[s], end[s]):
                other = order[x]
                if release[other] != low:
                    continue
                trail[changes, BOX], trail[changes, RELEASE] = other, release[other]
                trail[changes, SUPPORT], trail[changes, GAP] = support[other], gap[other]
                trail[changes, LEVEL], trail[changes, BEFORE] = level, last[other]
                last[other] = changes
                changes += 1
                gap[other] = support[other]
                if not is_listed[other]:
                    is_listed[other] = True
                    skipped[skips] = other
                    skips += 1
                unite(touched, level, bits, other)
        mark(touched[level], levels[level, _TOP], changed, below)
