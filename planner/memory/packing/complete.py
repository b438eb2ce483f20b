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
from planner.memory.packing.blame import (
    BEFORE,
    BOX,
    GAP,
    LEVEL,
    RELEASE,
    SUPPORT,
    blame,
    blame_below,
    blame_floor,
    blame_neighbours,
    blame_raise,
    blame_stack,
    blame_support,
)
from planner.memory.packing.sections import Sections
from planner.memory.packing.stacks import is_repeated, mark, put_back, restack, restore, take

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.int32]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]

#: How a node chooses its section: by the lowest floor, the fewest children (then the lowest floor or the least slack),
#: the fewest children for its failures, the most bytes that are still to be placed, or the fewest children times the
#: height below these bytes if they are at the top.
LOWEST, FEWEST, TIGHTEST, FAILING, FULLEST, CROWDED = range(6)
_GAP = -1
#: More levels than this share bits in the sets of those to blame.
_MOST_BITS = 8192


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
    pair_at, pairs = sections.pair_at, sections.pairs
    release, support, gap = np.maximum(fixed, 0), np.zeros(n, np.int64), np.full(n, -1, np.int64)
    placed = np.zeros(n, np.bool_)
    skipped, is_listed, skips = np.empty(n, np.int32), np.zeros(n, np.bool_), 0
    section_at, in_section, end = sections.section_at, sections.in_section.copy(), sections.section_at[1:].copy()
    total, lowest_top = np.zeros(len(in_section), np.int64), np.zeros(len(in_section), np.int64)
    floor, count, choices = (
        np.zeros(section_count, np.int64), np.zeros(section_count, np.int64), np.zeros(section_count, np.int64)
    )  # fmt: skip
    changed, below, suspect = np.zeros(words, np.uint64), np.full(section_count, np.int64(1) << 62), 0
    for box in range(n):
        changed |= bits[box]
    buffer, saved, records = np.empty(n, np.int32), np.empty(4_000_000, np.int32), np.empty((100_000, 4), np.int64)
    repeats, repeats_at = np.zeros(n, np.bool_), np.full(n, -1, np.int64)
    saves, place = 0, np.empty(len(in_section), np.int32)
    lowest_beside, known_at = np.zeros(n, np.int64), np.full(n, -1, np.int64)
    levels = n + 64
    reason, touched = np.zeros((levels, words), np.uint64), np.zeros((levels, words), np.uint64)
    child_at, children, child = np.zeros(levels + 1, np.int64), np.zeros(levels, np.int64), np.zeros(levels, np.int64)
    level_floor, level_section = np.zeros(levels, np.int64), np.zeros(levels, np.int64)
    save_at = np.zeros(levels, np.int64)
    trail_at, level_top = np.zeros(levels, np.int64), np.zeros(levels, np.int64)
    candidates, candidate_key = np.empty(4 * n + 64, np.int32), np.empty(n, np.int64)
    trail, trails, last = np.empty((8 * n + 64, 6), np.int64), 0, np.full(n, -1, np.int64)
    placed_at = np.zeros(n, np.int64)
    grain = (2 * n + 64) // _MOST_BITS + 1
    blamed = np.zeros((levels, (2 * n + 64) // grain // 64 + 1), np.uint64)
    to_place, nodes, level = n, 0, -1
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
                lowest = np.int64(1) << 62
                for p in range(pair_at[box], pair_at[box + 1]):
                    other = pairs[p]
                    if not placed[other] and release[other] + size[other] < lowest:
                        lowest = release[other] + size[other]
                        if lowest <= release[box]:
                            break
                if lowest <= release[box]:
                    continue
                for w in range(words):
                    reason[level, w] |= bits[box, w]
                blame_support(
                    box, int(lowest), pair_at, pairs, size, placed, placed_at, trail, last, blamed[level], grain
                )
                if lowest > highest[box]:
                    failed = True
                    break
                if trails == trail.shape[0]:
                    trail = np.concatenate((trail, np.empty_like(trail)))
                trail[trails, BOX], trail[trails, RELEASE], trail[trails, SUPPORT] = box, release[box], support[box]
                trail[trails, GAP], trail[trails, LEVEL], trail[trails, BEFORE] = gap[box], level, last[box]
                last[box] = trails
                trails += 1
                release[box] = lowest
                for w in range(words):
                    touched[level, w] |= bits[box, w]
                level_top[level] = max(level_top[level], lowest)
                mark(bits[box], int(lowest), changed, below)
                raised = True
        if not failed:
            # what is left of each section must not reach out of the room
            failing, saves = restack(
                changed,
                below,
                suspect,
                section_at,
                end,
                in_section,
                total,
                lowest_top,
                floor,
                count,
                choices,
                room,
                size,
                highest,
                alike,
                placed,
                offsets,
                release,
                support,
                buffer,
                saved,
                records,
                saves,
                repeats,
                repeats_at,
                nodes,
            )
            if failing >= 0:
                failed, suspect = True, failing
                weights[failing] += 1.0
                if level >= 0:
                    reason[level, failing >> 6] |= np.uint64(1) << np.uint64(failing & 63)
                    blame_stack(
                        section_at[failing],
                        end[failing],
                        in_section,
                        room[failing],
                        size,
                        highest,
                        release,
                        trail,
                        last,
                        blamed[level],
                        grain,
                    )
                else:
                    proof[:] = 0
                    proof[failing >> 6] = np.uint64(1) << np.uint64(failing & 63)
        if failed:
            if level < 0:
                return 0, nodes
        else:
            if to_place == 0:
                return 1, nodes
            best, best_first, best_second = -1, 0.0, 0.0
            for s in range(section_count):
                if count[s] == 0:
                    continue
                low = floor[s]
                slack = room[s] - low - total[end[s] - 1]
                branches = choices[s] + (slack > 0)
                first, second = float(low), float(branches)
                if choice == FEWEST:
                    first, second = float(branches), float(low)
                elif choice == TIGHTEST:
                    first, second = float(branches), float(slack)
                elif choice == FAILING:
                    first, second = branches / weights[s], float(low)
                elif choice == FULLEST:
                    first = -float(total[end[s] - 1])
                elif choice == CROWDED:
                    first, second = float(branches) * (low + slack), float(low)
                if best >= 0 and (first > best_first or (first == best_first and second >= best_second)):
                    continue
                fits_below = False
                for x in range(end[s] - count[s], end[s]):
                    box = in_section[x]
                    if known_at[box] != nodes:
                        known_at[box] = nodes
                        beside = np.int64(1) << 62
                        for q in range(span_at[box], span_at[box + 1]):
                            for t in range(span[q, 0], span[q, 1]):
                                beside = min(beside, lowest_top[end[t] - 1])
                        lowest_beside[box] = beside
                    if lowest_beside[box] <= low:
                        fits_below = True
                        break
                if not fits_below:
                    best, best_first, best_second = s, first, second
            level += 1
            if level == levels:
                reason = np.concatenate((reason, np.zeros_like(reason)))
                blamed = np.concatenate((blamed, np.zeros_like(blamed)))
                touched = np.concatenate((touched, np.zeros_like(touched)))
                child_at = np.concatenate((child_at, np.zeros_like(child_at)))
                children = np.concatenate((children, np.zeros_like(children)))
                child = np.concatenate((child, np.zeros_like(child)))
                level_floor = np.concatenate((level_floor, np.zeros_like(level_floor)))
                level_section = np.concatenate((level_section, np.zeros_like(level_section)))
                trail_at = np.concatenate((trail_at, np.zeros_like(trail_at)))
                level_top = np.concatenate((level_top, np.zeros_like(level_top)))
                save_at = np.concatenate((save_at, np.zeros_like(save_at)))
                levels *= 2
            first_child = child_at[level]
            if first_child + n + 1 > candidates.shape[0]:
                candidates = np.concatenate((candidates, np.empty_like(candidates)))
            low, last_child = floor[best], first_child
            reason[level, :] = 0
            blamed[level, :] = 0
            alone, is_full = -1, room[best] - low <= total[end[best] - 1]
            if is_full:
                blame_floor(section_at[best], end[best], in_section, low, release, trail, last, blamed[level], grain)
            for x in range(end[best] - count[best], end[best]):
                box = in_section[x]
                for w in range(words):
                    reason[level, w] |= bits[box, w]
                if fixed[box] >= 0:
                    alone = box
                    blame_below(box, low, pair_at, pairs, size, placed, trail, last, blamed[level], grain)
                    break
                most = np.int64(0)
                nothing_above = True
                for q in range(span_at[box], span_at[box + 1]):
                    for t in range(span[q, 0], span[q, 1]):
                        left = total[end[t] - 1]
                        nothing_above &= left == size[box]
                        most = max(most, left)
                if nothing_above:
                    alone = box
                    if not is_full:
                        blame_neighbours(bits[box], touched, level, blamed[level], grain)
                    break
                # nothing gets below it any more; of boxes alike, those of equal size are placed in their order, and so
                # are two that touch
                if is_repeated(box, size, alike, placed, offsets, release, support):
                    if support[box] < low:
                        blame_neighbours(bits[box], touched, level, blamed[level], grain)
                    other = alike[box]
                    while other != box:
                        if not placed[other]:
                            blame_raise(other, low, trail, last, blamed[level], grain)
                        elif offsets[other] + size[other] == low:
                            blame(placed_at[other], blamed[level], grain)
                        other = alike[other]
                    continue
                blame_below(box, low, pair_at, pairs, size, placed, trail, last, blamed[level], grain)
                candidate_key[box] = most if by_bytes_left else 0
                y = last_child
                while y > first_child:
                    other = candidates[y - 1]
                    if candidate_key[other] > candidate_key[box] or (
                        candidate_key[other] == candidate_key[box] and rank[other] < rank[box]
                    ):
                        break
                    candidates[y] = other
                    y -= 1
                candidates[y] = box
                last_child += 1
            if alone >= 0:
                candidates[first_child] = alone
                last_child = first_child + 1
            elif not is_full:
                candidates[last_child] = _GAP
                last_child += 1
            children[level], child[level] = last_child - first_child, 0
            child_at[level + 1], trail_at[level] = last_child, trails
            level_floor[level], level_section[level] = low, best
            save_at[level] = saves
        while child[level] == children[level] or failed:
            if not failed:  # all children of this node failed: so has the decision before it
                level -= 1
                if level < 0:
                    proof[:] = reason[0]
                    return 0, nodes
            restore(save_at[level], saves, records, saved, in_section)
            saves = save_at[level]
            box = candidates[child_at[level] + child[level] - 1]
            if box != _GAP:
                placed[box] = False
                put_back(box, span_at, span, end, in_section, place)
                to_place += 1
            while trails > trail_at[level]:
                trails -= 1
                moved = trail[trails, BOX]
                release[moved], last[moved] = trail[trails, RELEASE], trail[trails, BEFORE]
                support[moved], gap[moved] = trail[trails, SUPPORT], trail[trails, GAP]
            mark(touched[level], level_top[level], changed, below)
            if not failed:
                if (level + 1) % grain == 0:
                    bit = (level + 1) // grain
                    if bit < 64 * blamed.shape[1]:
                        blamed[level + 1, bit >> 6] &= ~(np.uint64(1) << np.uint64(bit & 63))
                bit = min(level // grain, 64 * blamed.shape[1] - 1)
                if (blamed[level + 1, bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1):
                    reason[level] |= reason[level + 1]
                    blamed[level] |= blamed[level + 1]
                else:
                    reason[level], blamed[level] = reason[level + 1], blamed[level + 1]
                    child[level] = children[level]
            failed = False
        nodes += 1
        if nodes > limit or flag[0] != 0:
            return -1, nodes
        box, low, section = candidates[child_at[level] + child[level]], level_floor[level], level_section[level]
        child[level] += 1
        touched[level, :] = 0
        if trails + n > trail.shape[0]:
            trail = np.concatenate((trail, np.empty_like(trail)))
        if box != _GAP:
            placed[box] = True
            take(box, span_at, span, end, in_section, place)
            to_place -= 1
            offsets[box], placed_at[box] = low, level
            for w in range(words):
                touched[level, w] |= bits[box, w]
            top = low + size[box]
            level_top[level] = top
            for p in range(pair_at[box], pair_at[box + 1]):
                other = pairs[p]
                if placed[other] or support[other] >= top:
                    continue
                trail[trails, BOX], trail[trails, RELEASE], trail[trails, SUPPORT] = (
                    other,
                    release[other],
                    support[other],
                )
                trail[trails, GAP], trail[trails, LEVEL], trail[trails, BEFORE] = gap[other], level, last[other]
                last[other] = trails
                trails += 1
                support[other] = top
                release[other] = max(release[other], top)
                for w in range(words):
                    touched[level, w] |= bits[other, w]
        else:
            level_top[level] = low
            for x in range(sections.section_at[section], end[section]):
                other = in_section[x]
                if release[other] != low:
                    continue
                trail[trails, BOX], trail[trails, RELEASE], trail[trails, SUPPORT] = (
                    other,
                    release[other],
                    support[other],
                )
                trail[trails, GAP], trail[trails, LEVEL], trail[trails, BEFORE] = gap[other], level, last[other]
                last[other] = trails
                trails += 1
                gap[other] = support[other]
                if not is_listed[other]:
                    is_listed[other] = True
                    skipped[skips] = other
                    skips += 1
                for w in range(words):
                    touched[level, w] |= bits[other, w]
        mark(touched[level], level_top[level], changed, below)
