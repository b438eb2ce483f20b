"""Where no packing fits a capacity: a few boxes that show it."""

from itertools import permutations

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.memory import pack
from tests.effort import EFFORT

BOXES = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 5), st.integers(1, 9)), min_size=1, max_size=5)
#: 10 bytes are alive at most, but 11 are needed; the fifth box has no part in it.
TIGHT = [(6, 8, 5), (1, 5, 2), (1, 6, 2), (4, 6, 2), (2, 4, 1), (0, 1, 4), (0, 3, 5), (5, 10, 5)]


def least_height(boxes, alignment=1):
    """The least height of boxes (lower, upper, size), by every order of pushing them down."""
    best = None
    for order in permutations(boxes):
        tops = []
        for low, up, size in order:
            under = max((top for other_low, other_up, top in tops if other_low < up and low < other_up), default=0)
            tops.append((low, up, -(-under // alignment) * alignment + size))
        peak = max((top for _, _, top in tops), default=0)
        best = peak if best is None else min(best, peak)
    return best


def shows_that_nothing_fits(boxes, capacity, alignment=1):
    assert least_height(boxes, alignment) > capacity
    for box in range(len(boxes)):
        assert least_height(boxes[:box] + boxes[box + 1 :], alignment) <= capacity


@settings(max_examples=30 * EFFORT, deadline=None)
@given(BOXES, st.sampled_from([1, 2, 4]), st.integers(1, 3))
def test_the_boxes_of_a_conflict_do_not_fit_and_fit_without_any_one(boxes, alignment, less):
    boxes = [(low, low + life, size) for low, life, size in boxes]
    capacity = max(least_height(boxes, alignment) - less, 0)
    packing = pack(*zip(*boxes, strict=True), capacity=capacity, alignment=alignment, explain=True)
    assert packing.bound > capacity
    assert packing.conflict.irreducible
    shows_that_nothing_fits([boxes[box] for box in packing.conflict.boxes], capacity, alignment)


def test_a_conflict_is_found_where_no_more_are_alive_than_the_capacity():
    packing = pack(*zip(*TIGHT, strict=True), capacity=10, explain=True)
    assert (packing.max_live, packing.bound) == (10, 11)
    assert packing.conflict.irreducible
    assert packing.conflict.boxes.tolist() == [0, 1, 2, 3, 5, 6, 7]
    shows_that_nothing_fits([TIGHT[box] for box in packing.conflict.boxes], 10)


def test_it_is_looked_for_only_when_asked_and_where_nothing_fits():
    assert pack(*zip(*TIGHT, strict=True), capacity=10).conflict is None
    assert pack(*zip(*TIGHT, strict=True), capacity=11, explain=True).conflict is None
    assert pack(*zip(*TIGHT, strict=True), explain=True).conflict is None


def test_without_time_it_is_not_said_to_be_irreducible():
    packing = pack(*zip(*TIGHT, strict=True), capacity=9, seconds=0, explain=True)
    assert packing.bound > 9
    assert not packing.conflict.irreducible
    assert least_height([TIGHT[box] for box in packing.conflict.boxes]) > 9
