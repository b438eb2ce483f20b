"""Boxes as the complete search takes them: in units, by the sections in which they are alive."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.jit import kernel

Ints = NDArray[np.int64]
Indices = NDArray[np.int32]
#: Numbers of boxes, unsigned: a kernel then does not look whether one is negative when it is an index.
Boxes = NDArray[np.uint32]
Words = NDArray[np.uint64]
#: More pairs, entries of sections, or words of bits than this are too many to search.
_MOST_PAIRS, _MOST_ENTRIES, _MOST_WORDS = 10_000_000, 5_000_000, 4_000_000


class Sections(NamedTuple):
    """The sets of boxes that are alive at one time, of which none contains another, and the boxes in them.

    Args:
        span_at, span: `[boxes + 1]` and `[spans, 2]`, the sections in which each box is alive.
        pair_at, pairs: `[boxes + 1]` and `[pairs]`, the boxes that are at some time alive with each.
        section_at, in_section: `[sections + 1]` and `[entries]`, the boxes alive in each section.
        bits: `[boxes, words]`, in which sections each box is alive, as bits.
        fullest: `[boxes]`, the most bytes alive at once during each one's life.
    """

    span_at: Indices
    span: Indices
    pair_at: Ints
    pairs: Boxes
    section_at: Ints
    in_section: Boxes
    bits: Words
    fullest: Ints


def sections_of(span_at: Indices, span: Indices, segments: int, sizes: Ints) -> Sections | None:
    """The sections of boxes, each of which is alive at some time; None if there are too many to search.

    Args:
        span_at, span: `[boxes + 1]` and `[spans, 2]`, the segments of time in which each box is alive.
        segments: number of segments.
        sizes: `[boxes]`, bytes.
    """
    begins, ends = np.zeros(segments + 1, np.bool_), np.zeros(segments + 1, np.bool_)
    begins[span[:, 0]], ends[span[:, 1]] = True, True
    kept = _maximal(begins, ends)
    narrow = np.searchsorted(kept, span).astype(np.int32)
    count = len(kept)
    entries = int((narrow[:, 1] - narrow[:, 0]).sum())
    words = -(-count // 64)
    boxes = len(span_at) - 1
    if entries > _MOST_ENTRIES or boxes * words > _MOST_WORDS:
        return None
    box_of = np.repeat(np.arange(boxes, dtype=np.int32), np.diff(span_at))
    by_begin = np.argsort(narrow[:, 0], kind="stable").astype(np.int32)
    pair_count = _count_pairs(narrow, box_of, by_begin, boxes)
    if pair_count.sum() > _MOST_PAIRS:
        return None
    pair_at = np.concatenate(([0], np.cumsum(pair_count)))
    return Sections(span_at, narrow, *_filled(span_at, narrow, box_of, by_begin, pair_at, count, words, sizes))


@kernel
def _maximal(begins: NDArray[np.bool_], ends: NDArray[np.bool_]) -> Ints:
    """The segments in which a set of boxes is alive that no other contains: something begins before, and ends after."""
    kept = np.empty(len(begins), np.int64)
    count, has_begun = 0, False
    for t in range(len(begins) - 1):
        has_begun |= begins[t]
        if has_begun and ends[t + 1]:
            kept[count] = t
            count += 1
            has_begun = False
    return kept[:count]


@kernel
def _count_pairs(span: Indices, box_of: Indices, by_begin: Indices, boxes: int) -> Ints:
    """How many spans of other boxes overlap those of each."""
    count = np.zeros(boxes, np.int64)
    for x in range(len(by_begin)):
        one = by_begin[x]
        y = x + 1
        while y < len(by_begin) and span[by_begin[y], 0] < span[one, 1]:
            other = by_begin[y]
            if box_of[one] != box_of[other]:
                count[box_of[one]] += 1
                count[box_of[other]] += 1
            y += 1
    return count


@kernel
def _filled(
    span_at: Indices, span: Indices, box_of: Indices, by_begin: Indices, pair_at: Ints, sections: int, words: int,
    sizes: Ints,
) -> tuple[Ints, Boxes, Ints, Boxes, Words, Ints]:  # fmt: skip
    boxes = len(span_at) - 1
    pairs, filled = np.empty(pair_at[boxes], np.uint32), pair_at.copy()
    for x in range(len(by_begin)):
        one = by_begin[x]
        y = x + 1
        while y < len(by_begin) and span[by_begin[y], 0] < span[one, 1]:
            a, b = box_of[one], box_of[by_begin[y]]
            if a != b:
                pairs[filled[a]], pairs[filled[b]] = b, a
                filled[a] += 1
                filled[b] += 1
            y += 1
    section_at, live = np.zeros(sections + 1, np.int64), np.zeros(sections, np.int64)
    bits = np.zeros((boxes, words), np.uint64)
    for box in range(boxes):
        for q in range(span_at[box], span_at[box + 1]):
            for s in range(span[q, 0], span[q, 1]):
                section_at[s + 1] += 1
                live[s] += sizes[box]
                bits[box, s >> 6] |= np.uint64(1) << np.uint64(s & 63)
    for s in range(sections):
        section_at[s + 1] += section_at[s]
    in_section, at = np.empty(section_at[sections], np.uint32), section_at.copy()
    fullest = np.zeros(boxes, np.int64)
    for box in range(boxes):
        for q in range(span_at[box], span_at[box + 1]):
            for s in range(span[q, 0], span[q, 1]):
                in_section[at[s]] = box
                at[s] += 1
                fullest[box] = max(fullest[box], live[s])
    return pair_at, pairs, section_at, in_section, bits, fullest
