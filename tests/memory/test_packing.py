from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import StowageError
from planner.graph import arrays
from planner.memory import lifetimes, pack, pack_step, step_peak
from tests.effort import EFFORT
from tests.memory.graphs import random_graph, random_order

BOX = st.tuples(st.integers(0, 12), st.integers(0, 8), st.integers(0, 20))


def columns(boxes):
    lower = [low for low, _, _ in boxes]
    return lower, [low + length for low, length, _ in boxes], [size for _, _, size in boxes]


def meetings(lower, upper, sizes, offsets):
    """Pairs of boxes that share a byte at some time, byte by byte and time by time."""
    owner, pairs = {}, []
    for box, (low, up, size, offset) in enumerate(zip(lower, upper, sizes, offsets, strict=True)):
        for place in ((t, byte) for t in range(low, up) for byte in range(offset, offset + size)):
            if owner.setdefault(place, box) != box:
                pairs.append((owner[place], box))
    return pairs


def live(lower, upper, sizes):
    return max(
        (sum(s for a, b, s in zip(lower, upper, sizes, strict=True) if a <= t < b) for t in range(32)), default=0
    )


def least_height(lower, upper, sizes, alignment):
    """The least height of all placements: some order, each box as low as it can, reaches it."""
    best = 0
    present = [box for box, size in enumerate(sizes) if size and lower[box] < upper[box]]
    for order in permutations(present):
        offsets = {}
        for box in order:
            others = [o for o in offsets if lower[o] < upper[box] and lower[box] < upper[o]]
            at = 0
            while any(offsets[o] < at + sizes[box] and at < offsets[o] + sizes[o] for o in others):
                at += alignment
            offsets[box] = at
        peak = max((offsets[box] + sizes[box] for box in offsets), default=0)
        best = min(best or peak, peak)
    return best


@settings(max_examples=200, deadline=None)
@given(st.lists(BOX, max_size=30), st.sampled_from([1, 1, 4, 16]), st.integers(0, 12))
def test_boxes_that_are_alive_together_share_no_byte(boxes, alignment, rounds):
    lower, upper, sizes = columns(boxes)
    packing = pack(lower, upper, sizes, alignment=alignment, rounds=rounds)
    assert meetings(lower, upper, sizes, packing.offsets) == []
    assert (packing.offsets % alignment == 0).all()
    tops = [o + s for a, b, o, s in zip(lower, upper, packing.offsets, sizes, strict=True) if a < b]
    assert packing.peak == max(tops, default=0)
    if alignment == 1:
        assert packing.max_live == live(lower, upper, sizes)
    assert packing.max_live <= packing.bound <= packing.peak
    assert packing.optimal == (packing.peak == packing.bound)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(*(st.integers(0, 12),) * 2, st.integers(0, 20)), max_size=30), st.sampled_from([1, 4, 16]))
def test_in_a_step_that_repeats_a_box_lives_on_from_its_end_to_its_beginning(boxes, alignment):
    lower, upper, sizes = [list(column) for column in zip(*boxes, strict=True)] if boxes else ([], [], [])
    packing = pack(lower, upper, sizes, alignment=alignment, repeats=True, rounds=8)
    owner, alive = {}, [0] * 13
    for box, (low, up, size, offset) in enumerate(zip(lower, upper, sizes, packing.offsets.tolist(), strict=True)):
        times = range(low, up) if low <= up else [*range(low, 13), *range(up)]
        for t in times:
            alive[t] += size
            assert all(owner.setdefault((t, byte), box) == box for byte in range(offset, offset + size))
    assert packing.peak >= packing.max_live >= max(alive)
    if alignment == 1:
        assert packing.max_live == max(alive)


@settings(max_examples=60, deadline=None)
@given(st.lists(BOX, max_size=5), st.sampled_from([1, 4, 16]))
def test_optimal_is_said_only_of_the_least_height(boxes, alignment):
    lower, upper, sizes = columns(boxes)
    packing = pack(lower, upper, sizes, alignment=alignment)
    least = least_height(lower, upper, sizes, alignment)
    assert packing.max_live <= least <= packing.peak
    assert not packing.optimal or packing.peak == least


def test_large_boxes_are_proven_as_quickly_as_small_ones():
    gib = 2**30  # each pair is alive together and never all three, so that only a search shows what they need
    packing = pack([0, 1, 2], [2, 3, 1], [gib, gib, gib], repeats=True)
    assert (packing.max_live, packing.peak, packing.bound, packing.optimal) == (2 * gib, 3 * gib, 3 * gib, True)


def least_height_with_gaps(alive, sizes, alignment):
    """The least height of boxes that are alive at given sets of times, by every order of placing them."""
    best = None
    for order in permutations(range(len(sizes))):
        offsets = {}
        for box in order:
            under = max((offsets[o] + sizes[o] for o in offsets if alive[o] & alive[box]), default=0)
            offsets[box] = -(-under // alignment) * alignment
        peak = max((offsets[box] + sizes[box] for box in offsets), default=0)
        best = peak if best is None else min(best, peak)
    return best


@settings(max_examples=60 * EFFORT, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5), st.integers(1, 9), st.integers(0, 3)), max_size=5),
    st.sampled_from([1, 2, 4]),
)
def test_few_boxes_with_gaps_are_placed_at_the_least_height_and_that_is_proven(boxes, alignment):
    gaps = [[(low + 1, low + 1 + gap)] if 0 < gap < life - 1 else [] for low, life, _, gap in boxes]
    lower, upper, sizes = columns([box[:3] for box in boxes])
    alive = [
        set(range(low, up)) - {t for a, b in of_box for t in range(a, b)}
        for low, up, of_box in zip(lower, upper, gaps, strict=True)
    ]
    packing = pack(lower, upper, sizes, gaps=gaps, alignment=alignment)
    assert packing.optimal
    assert packing.peak == packing.bound == least_height_with_gaps(alive, sizes, alignment)
    for one, other in combinations(range(len(boxes)), 2):
        if alive[one] & alive[other]:
            low, high = sorted((one, other), key=lambda box: packing.offsets[box])
            assert packing.offsets[low] + sizes[low] <= packing.offsets[high]


@settings(max_examples=100, deadline=None)
@given(st.lists(BOX, max_size=20), st.lists(BOX, max_size=6), st.sampled_from([1, 8]))
def test_fixed_offsets_stay_and_the_others_avoid_them(free, placed, alignment):
    below = pack(*columns(placed), alignment=alignment)
    lower, upper, sizes = columns(placed + free)
    fixed = [*below.offsets.tolist(), *([-1] * len(free))]
    packing = pack(lower, upper, sizes, fixed=fixed, alignment=alignment, rounds=6)
    assert packing.offsets[: len(placed)].tolist() == below.offsets.tolist()
    assert meetings(lower, upper, sizes, packing.offsets) == []


def test_fixed_boxes_that_meet_are_refused():
    with pytest.raises(StowageError, match="fix only one"):
        pack([0, 1], [2, 3], [8, 8], fixed=[0, 4])
    assert pack([0, 2], [2, 3], [8, 8], fixed=[0, 4]).peak == 12


@pytest.mark.parametrize(
    ("boxes", "options", "says"),
    [
        (([0], [1, 2], [4]), {}, "lists of one length"),
        (([[0]], [[1]], [[4]]), {}, "lists of one length"),
        (([2], [1], [4]), {}, "box 0 ends before it begins"),
        (([0, 0], [1, 1], [4, -4]), {}, "box 1 has a negative size"),
        (([0], [1], [4.5]), {}, "whole numbers"),
        (([0, 0], [1, 1], [2**61, 2**62]), {}, "more than 2[*][*]62 bytes"),
        (([0], [1], [4]), {"alignment": 0}, "alignment must be 1 byte or more, got 0"),
        (([0], [1], [4]), {"alignment": 8, "fixed": [4]}, "no multiple of 8"),
        (([0], [1], [4]), {"fixed": [0, 1]}, "lists of one length"),
        (([0], [4], [4]), {"gaps": []}, "a list for each of the 1 boxes, got 0"),
        (([0], [4], [4]), {"gaps": [[(2, 2)]]}, "a pair of times, the second after the first"),
        (([0], [4], [4]), {"gaps": [[(2, 5)]]}, "a gap of box 0 is outside of its life"),
        (([0], [1], [4]), {"seconds": -1}, "seconds must be 0 or more, got -1"),
    ],
)
def test_nonsense_is_refused(boxes, options, says):
    with pytest.raises(StowageError, match=says):
        pack(*boxes, **options)


def test_no_boxes_need_no_memory():
    packing = pack([], [], [])
    assert (packing.peak, packing.max_live, packing.optimal) == (0, 0, True)


def test_the_search_stops_at_the_capacity_and_goes_on_without():
    rng = np.random.default_rng(3)
    lower = rng.integers(0, 200, 300)
    upper = lower + rng.integers(1, 60, 300)
    sizes = rng.integers(1, 1000, 300)
    loose = pack(lower, upper, sizes, capacity=10**9)
    tight = pack(lower, upper, sizes)
    assert loose.max_live <= tight.peak < loose.peak <= 10**9
    again = pack(lower, upper, sizes)
    assert (again.offsets == tight.offsets).all()


@pytest.mark.parametrize("seed", range(5))
def test_a_cut_square_is_packed_nearly_whole(seed):
    """Rectangles cut from a square fit back into it, so the square's side is the least height."""
    rng = np.random.default_rng(seed)
    pieces = [(0, 64, 0, 2**20)]
    while len(pieces) < 150:
        low, up, bottom, top = pieces.pop(rng.integers(len(pieces)))
        if rng.random() < 0.5 and up - low > 1:
            cut = int(rng.integers(low + 1, up))
            pieces += [(low, cut, bottom, top), (cut, up, bottom, top)]
        else:
            cut = int(rng.integers(bottom + 1, top)) if top - bottom > 1 else top
            pieces += [(low, up, bottom, cut), (low, up, cut, top)]
    box = np.array([piece for piece in pieces if piece[3] > piece[2]])
    packing = pack(box[:, 0], box[:, 1], box[:, 3] - box[:, 2])
    assert packing.max_live == 2**20
    assert packing.peak <= 1.25 * 2**20


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from([1, 16, 64]))
def test_a_step_is_packed_with_reused_buffers_at_one_address(seed, shuffle, alignment):
    graph = random_graph(seed)
    order = random_order(graph, shuffle)
    life = lifetimes(graph, order)
    packing = pack_step(arrays(graph), order, alignment=alignment)
    sizes = [storage.bytes for storage in graph.storages]
    assert meetings(life.birth, life.end, sizes, packing.offsets) == []
    reusing = np.flatnonzero(life.reused_buffer >= 0)
    assert (packing.offsets[reusing] == packing.offsets[life.reused_buffer[reusing]]).all()
    alive = life.birth < life.end
    assert packing.peak == max((packing.offsets + sizes)[alive], default=0)
    assert packing.peak >= life.peak_bytes
    assert step_peak(graph, alignment) == pack_step(graph, alignment=alignment).peak
