"""Size classes and counts: the crossover of figure 5, and what holds after any crossover, mutation and repair."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.swap.methods.swapadvisor.allocation_gene import (
    Allocation,
    average_counts,
    cross_classes,
    cross_counts,
    mutate_classes,
    mutate_counts,
    object_bytes,
    repair_classes,
    repair_counts,
)
from planner.swap.methods.swapadvisor.individual import Rates, breed_allocations
from planner.swap.methods.swapadvisor.pool import default_allocation, demand_of, fits, pool_of, random_allocation
from planner.swap.problem.problem import build_problem
from tests.swap.random_graphs import machine, steps

SIZES = np.array([1, 2, 3, 4])
CAPACITY = 12
NONE, ANY = np.ones(2, np.int64), np.full(2, 1000)


def pool(classes, counts):
    """The figure numbers classes from 1, we from 0."""
    return Allocation(np.array(classes) - 1, np.array(counts))


ONE_CLASS, TWO_CLASSES = pool([1, 1, 1, 1], [4]), pool([1, 2, 2, 2], [8, 1])


def test_figure_5_classes_are_cut_joined_and_repaired_by_the_smallest_increases():
    joined = np.concatenate([TWO_CLASSES.classes[:2], ONE_CLASS.classes[2:]])
    assert (joined + 1).tolist() == [1, 2, 1, 1]
    assert (repair_classes(joined) + 1).tolist() == [1, 2, 2, 2]
    assert (cross_classes(TWO_CLASSES.classes, ONE_CLASS.classes, 2) + 1).tolist() == [1, 2, 2, 2]
    assert (cross_classes(ONE_CLASS.classes, TWO_CLASSES.classes, 2) + 1).tolist() == [1, 1, 2, 2]


def test_figure_5_counts_are_written_out_by_size_joined_averaged_and_repaired_to_the_capacity():
    """The first child's counts by size are 8, 1, 4, 4: its second class gets the mean of the last three."""
    classes = pool([1, 2, 2, 2], []).classes
    assert average_counts(np.array([8, 1, 4, 4]), classes).tolist() == [8, 3]
    counts = cross_counts(TWO_CLASSES, ONE_CLASS, 2, classes)
    assert counts.tolist() == [8, 3]
    objects = object_bytes(classes, SIZES)
    assert objects.tolist() == [1, 4]
    assert repair_counts(counts, objects, NONE, ANY, CAPACITY).tolist() == [4, 2]


def test_figure_5_the_second_child_fits_as_it_is():
    """Its counts by size are 4, 4, 1, 1."""
    classes = pool([1, 1, 2, 2], []).classes
    counts = cross_counts(ONE_CLASS, TWO_CLASSES, 2, classes)
    assert counts.tolist() == [4, 1]
    objects = object_bytes(classes, SIZES)
    assert (counts * objects).sum() == CAPACITY
    assert repair_counts(counts, objects, NONE, ANY, CAPACITY).tolist() == [4, 1]


def test_a_step_of_two_is_repaired_from_below():
    assert repair_classes(np.array([0, 0, 2, 3])).tolist() == [0, 1, 2, 3]
    assert repair_classes(np.array([0, 2, 3])).tolist() == [0, 1, 2]  # all moved by one, and numbered from 0 again


def test_a_size_that_moves_takes_all_later_ones_along():
    flips = np.array([False, True, False])
    assert mutate_classes(np.array([0, 0, 0, 1]), flips).tolist() == [0, 0, 1, 2]
    assert mutate_classes(np.array([0, 1, 2, 2]), flips).tolist() == [0, 1, 1, 1]


def test_counts_are_drawn_around_the_old_ones():
    counts, normal = np.array([100, 100, 2, 2]), np.array([1.0, 3.0, -1.0, -5.0])
    chosen = np.array([True, False, True, True])
    assert mutate_counts(counts, chosen, normal, 0.2, 1.0).tolist() == [120, 100, 1, 1]


@st.composite
def classes_of(draw, sizes):
    return np.concatenate([[0], np.cumsum(draw(st.lists(st.integers(0, 1), min_size=sizes - 1, max_size=sizes - 1)))])


def steps_of(classes):
    return set(np.diff(classes).tolist())


@given(st.data(), st.integers(1, 12))
def test_classes_always_begin_at_0_and_rise_by_0_or_1(data, sizes):
    one, other = data.draw(classes_of(sizes)), data.draw(classes_of(sizes))
    cut = data.draw(st.integers(0, sizes))
    crossed = cross_classes(one, other, cut)
    flips = np.array(data.draw(st.lists(st.booleans(), min_size=sizes - 1, max_size=sizes - 1)), np.bool_)
    for child in (crossed, mutate_classes(crossed, flips)):
        assert len(child) == sizes
        assert child[0] == 0
        assert steps_of(child) <= {0, 1}
    assert (np.diff(mutate_classes(crossed, flips)) != np.diff(crossed)).tolist() == flips.tolist()


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_no_smaller_increases_repair_classes(raw):
    """Held against all vectors that are no lower than the raw one anywhere and rise by 0 or 1."""
    repaired = repair_classes(np.array(raw))
    assert steps_of(repaired) <= {0, 1}
    rising = [start + np.cumsum([0, *rises]) for start in range(10) for rises in product((0, 1), repeat=len(raw) - 1)]
    lowest = np.min([vector for vector in rising if (vector >= raw).all()], axis=0)
    assert (lowest - lowest[0]).tolist() == repaired.tolist()


@given(st.data(), st.integers(1, 8), st.integers(1, 5000))
def test_repaired_counts_are_within_capacity_as_far_as_the_least_ones_allow(data, classes, capacity):
    def column(low, high):
        return np.array(data.draw(st.lists(st.integers(low, high), min_size=classes, max_size=classes)), np.int64)

    objects, least, wished = np.sort(column(1, 300)), column(1, 4), column(1, 60)
    most = least + column(0, 30)
    counts = repair_counts(wished, objects, least, most, capacity)
    assert (counts >= least).all()
    assert (counts <= most).all()
    assert (counts * objects).sum() <= capacity or (counts == least).all()
    if (np.clip(wished, least, most) * objects).sum() <= capacity:
        assert counts.tolist() == np.clip(wished, least, most).tolist()


@given(steps(), st.integers(0, 2**32), st.floats(0.0, 1.5), st.floats(0.0, 1.0))
@settings(max_examples=60, deadline=None)
def test_pools_of_any_generation_fit_and_hold_what_each_op_needs_unless_nothing_does(step, seed, share, mutation):
    graph, seconds = step
    total = sum(storage.bytes for storage in graph.storages)
    problem = build_problem(graph, machine(), max(64, int(share * total)), np.array(seconds))
    demand, random = demand_of(problem), np.random.default_rng(seed)
    parents = [random_allocation(demand, random) for _ in range(2)]
    children = breed_allocations(demand, *parents, Rates(mutation, 0.5, 1.0), random)
    for allocation in (*parents, *children, default_allocation(problem, demand)):
        assert (allocation.classes[:1] == 0).all()
        assert steps_of(allocation.classes) <= {0, 1}
        assert len(allocation.counts) == len(set(allocation.classes.tolist()))
        laid = pool_of(demand, allocation)
        needs = [
            np.bincount(laid.class_of[_touched(problem, op)], minlength=len(allocation.counts))
            for op in range(problem.ops)
        ]
        assert (np.diff(laid.first) >= np.max(needs, axis=0)).all()
        if fits(demand, allocation):
            _objects_lie_side_by_side(problem, laid)
        else:
            assert (np.diff(laid.first) == np.max(needs, axis=0)).all()


def _touched(problem, op):
    touches = problem.arrays.touches
    return touches.items[touches.start[op] : touches.start[op + 1]]


def _objects_lie_side_by_side(problem, laid):
    """Every storage of a class fits each of its objects, and the last object ends within the memory."""
    ends = np.append(laid.offset[1:], problem.memory)
    for storage in np.flatnonzero(laid.class_of >= 0):
        first, stop = laid.first[laid.class_of[storage]], laid.first[laid.class_of[storage] + 1]
        assert (ends[first:stop] - laid.offset[first:stop] >= problem.arrays.bytes[storage]).all()
