"""Complete search for a placement below a height, which finds one or proves that there is none.

Only placements are looked for in which every box is at the bottom, fixed, or on top of another that is alive with it;
if there is a placement, then pushing its boxes down makes one like that. Boxes are placed from below. A node of the
search looks at one *section* (boxes that are all alive at one time) below whose lowest possible offset nothing fits any
more: either one of the boxes that may be there is there, or none is (a gap). A box that is left out at a gap must later
get another one below it, which raises its lowest possible offset.

A failure comes with the sections that its proof has read. A decision that changed none of them is not to blame for it,
and the search goes back past it (conflict-directed backjumping: Prosser, Computational Intelligence 1993).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.jit import kernel

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.int32]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]

#: How a node chooses its section: by the lowest floor, the fewest children (then the lowest floor or the least slack),
#: the fewest children for its failures, or the most bytes that are still to be placed.
LOWEST, FEWEST, TIGHTEST, FAILING, FULLEST = range(5)
_GAP = -1


@kernel
def place_completely(
    size: Ints,
    highest: Ints,
    fixed: Ints,
    alike: Indices,
    span_at: Indices,
    span: Indices,
    pair_at: Ints,
    pairs: Indices,
    section_at: Ints,
    in_section: Indices,
    bits: Words,
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
        span_at, span: `[boxes + 1]` and `[spans, 2]`, the sections in which each box is alive.
        pair_at, pairs: `[boxes + 1]` and `[pairs]`, the boxes that are at some time alive with each.
        section_at, in_section: `[sections + 1]` and `[entries]`, the boxes alive in each section; reordered.
        bits: `[boxes, words]`, the same as bits.
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
    n, sections, words = size.shape[0], room.shape[0], bits.shape[1]
    release, support, gap = np.maximum(fixed, 0), np.zeros(n, np.int64), np.full(n, -1, np.int64)
    key, placed = release.copy(), np.zeros(n, np.bool_)
    skipped, is_listed, skips = np.empty(n, np.int32), np.zeros(n, np.bool_), 0
    count, end = np.zeros(sections, np.int64), np.zeros(sections, np.int64)
    floor, left, least_top = np.zeros(sections, np.int64), np.zeros(sections, np.int64), np.zeros(sections, np.int64)
    dirty = np.zeros(words, np.uint64)
    for box in range(n):
        dirty |= bits[box]
    levels = n + 64
    reason, touched = np.zeros((levels, words), np.uint64), np.zeros((levels, words), np.uint64)
    child_at, children, child = np.zeros(levels + 1, np.int64), np.zeros(levels, np.int64), np.zeros(levels, np.int64)
    level_floor, level_section = np.zeros(levels, np.int64), np.zeros(levels, np.int64)
    trail_at = np.zeros(levels, np.int64)
    candidates, candidate_key = np.empty(4 * n + 64, np.int32), np.empty(n, np.int64)
    trail, trails = np.empty((8 * n + 64, 4), np.int64), 0
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
                if lowest > highest[box]:
                    failed = True
                    break
                if trails == trail.shape[0]:
                    trail = np.concatenate((trail, np.empty_like(trail)))
                trail[trails, 0], trail[trails, 1], trail[trails, 2] = box, release[box], support[box]
                trail[trails, 3] = gap[box]
                trails += 1
                release[box] = key[box] = lowest
                for w in range(words):
                    touched[level, w] |= bits[box, w]
                    dirty[w] |= bits[box, w]
                raised = True
        if not failed:
            # stack what is left of each section from its highest release down: it must not reach out of the room
            for w in range(words):
                if dirty[w] == 0:
                    continue
                for s in range(64 * w, min(64 * w + 64, sections)):
                    if not (dirty[w] >> np.uint64(s & 63)) & np.uint64(1):
                        continue
                    begin = section_at[s]
                    for x in range(begin + 1, section_at[s + 1]):
                        box = in_section[x]
                        value = key[box]
                        y = x - 1
                        while y >= begin and key[in_section[y]] < value:
                            in_section[y + 1] = in_section[y]
                            y -= 1
                        in_section[y + 1] = box
                    total, at_floor, value = np.int64(0), 0, np.int64(-1)
                    low_top = np.int64(1) << 62
                    x = begin
                    while x < section_at[s + 1]:
                        box = in_section[x]
                        if placed[box]:
                            break
                        total += size[box]
                        if key[box] != value:
                            value, at_floor = key[box], 0
                        if value > highest[box] or value + total > room[s]:
                            failed = True
                            break
                        at_floor += 1
                        low_top = min(low_top, value + size[box])
                        x += 1
                    if failed:
                        weights[s] += 1.0
                        if level >= 0:
                            reason[level, w] |= np.uint64(1) << np.uint64(s & 63)
                        else:
                            proof[:] = 0
                            proof[w] = np.uint64(1) << np.uint64(s & 63)
                        break
                    left[s], count[s], floor[s], least_top[s], end[s] = total, at_floor, value, low_top, x
                if failed:
                    break
        if failed:
            if level < 0:
                return 0, nodes
        else:
            dirty[:] = 0
            if to_place == 0:
                return 1, nodes
            best, best_first, best_second = -1, 0.0, 0.0
            for s in range(sections):
                if count[s] == 0:
                    continue
                low = floor[s]
                slack = room[s] - low - left[s]
                branches = count[s] + (slack > 0)
                first, second = float(low), float(branches)
                if choice == FEWEST:
                    first, second = float(branches), float(low)
                elif choice == TIGHTEST:
                    first, second = float(branches), float(slack)
                elif choice == FAILING:
                    first, second = branches / weights[s], float(low)
                elif choice == FULLEST:
                    first = -float(left[s])
                if best >= 0 and (first > best_first or (first == best_first and second >= best_second)):
                    continue
                fits_below = False
                for x in range(end[s] - count[s], end[s]):
                    box = in_section[x]
                    for q in range(span_at[box], span_at[box + 1]):
                        for t in range(span[q, 0], span[q, 1]):
                            fits_below |= left[t] > 0 and least_top[t] <= low
                    if fits_below:
                        break
                if not fits_below:
                    best, best_first, best_second = s, first, second
            level += 1
            if level == levels:
                reason = np.concatenate((reason, np.zeros_like(reason)))
                touched = np.concatenate((touched, np.zeros_like(touched)))
                child_at = np.concatenate((child_at, np.zeros_like(child_at)))
                children = np.concatenate((children, np.zeros_like(children)))
                child = np.concatenate((child, np.zeros_like(child)))
                level_floor = np.concatenate((level_floor, np.zeros_like(level_floor)))
                level_section = np.concatenate((level_section, np.zeros_like(level_section)))
                trail_at = np.concatenate((trail_at, np.zeros_like(trail_at)))
                levels *= 2
            first_child = child_at[level]
            if first_child + n + 1 > candidates.shape[0]:
                candidates = np.concatenate((candidates, np.empty_like(candidates)))
            low, last_child = floor[best], first_child
            reason[level, :] = 0
            alone = -1
            for x in range(end[best] - count[best], end[best]):
                box = in_section[x]
                for w in range(words):
                    reason[level, w] |= bits[box, w]
                if fixed[box] >= 0:
                    alone = box
                    break
                most = np.int64(0)
                nothing_above = True
                for q in range(span_at[box], span_at[box + 1]):
                    for t in range(span[q, 0], span[q, 1]):
                        nothing_above &= left[t] == size[box]
                        most = max(most, left[t])
                if nothing_above:
                    alone = box
                    break
                # nothing gets below it any more; of boxes alike, those of equal size are placed in their order, and so
                # are two that touch
                is_repeated = support[box] < low
                other = alike[box]
                while other != box:
                    if placed[other]:
                        is_repeated |= other > box and offsets[other] + size[other] == low
                    else:
                        is_repeated |= other < box and size[other] == size[box] and release[other] == low
                    other = alike[other]
                if is_repeated:
                    continue
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
            elif room[best] - low > left[best]:
                candidates[last_child] = _GAP
                last_child += 1
            children[level], child[level] = last_child - first_child, 0
            child_at[level + 1], trail_at[level] = last_child, trails
            level_floor[level], level_section[level] = low, best
        while child[level] == children[level] or failed:
            if not failed:  # all children of this node failed: so has the decision before it
                level -= 1
                if level < 0:
                    proof[:] = reason[0]
                    return 0, nodes
            box = candidates[child_at[level] + child[level] - 1]
            if box != _GAP:
                placed[box] = False
                key[box] = release[box]
                to_place += 1
            while trails > trail_at[level]:
                trails -= 1
                changed = trail[trails, 0]
                release[changed] = key[changed] = trail[trails, 1]
                support[changed], gap[changed] = trail[trails, 2], trail[trails, 3]
            for w in range(words):
                dirty[w] |= touched[level, w]
            if not failed:
                is_to_blame = False
                for w in range(words):
                    is_to_blame |= (touched[level, w] & reason[level + 1, w]) != 0
                if is_to_blame:
                    for w in range(words):
                        reason[level, w] |= reason[level + 1, w]
                else:
                    for w in range(words):
                        reason[level, w] = reason[level + 1, w]
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
            key[box] = -1
            to_place -= 1
            offsets[box] = low
            for w in range(words):
                touched[level, w] |= bits[box, w]
            top = low + size[box]
            for p in range(pair_at[box], pair_at[box + 1]):
                other = pairs[p]
                if placed[other] or support[other] >= top:
                    continue
                trail[trails, 0], trail[trails, 1], trail[trails, 2] = other, release[other], support[other]
                trail[trails, 3] = gap[other]
                trails += 1
                support[other] = top
                if release[other] < top:
                    release[other] = key[other] = top
                for w in range(words):
                    touched[level, w] |= bits[other, w]
        else:
            for x in range(section_at[section], section_at[section + 1]):
                other = in_section[x]
                if placed[other] or release[other] != low:
                    continue
                trail[trails, 0], trail[trails, 1], trail[trails, 2] = other, release[other], support[other]
                trail[trails, 3] = gap[other]
                trails += 1
                gap[other] = support[other]
                if not is_listed[other]:
                    is_listed[other] = True
                    skipped[skips] = other
                    skips += 1
                for w in range(words):
                    touched[level, w] |= bits[other, w]
        for w in range(words):
            dirty[w] |= touched[level, w]
