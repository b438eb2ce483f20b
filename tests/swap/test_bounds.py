"""Bounds that hold for any order, against figures worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.graph import GraphBuilder, Kind, Phase
from planner.swap import live_sets, lower_bound
from tests.effort import EFFORT
from tests.memory.graphs import random_graph, random_order
from tests.swap.random_graphs import machine

MB = 1_000_000


def test_with_memory_enough_it_is_the_compute():
    graph = hourglass(4)
    assert lower_bound(graph, machine(), 100 * MB, np.full(len(graph.ops), 0.5)) == pytest.approx(len(graph.ops) / 2)


def hourglass(width):
    """So many values of 1 MB made one by one, one op that waits for all of them, then all are read again one by one."""
    b = GraphBuilder("hourglass")
    x = b.add_tensor("x", b.add_storage("x", 4, Kind.INPUT), (1,))
    values = [b.add_tensor(f"v{i}", b.add_storage(f"v{i}", MB, Kind.ACTIVATION), (MB // 4,)) for i in range(width)]
    marks = [b.add_tensor(f"m{i}", b.add_storage(f"m{i}", 4, Kind.ACTIVATION), (1,)) for i in range(2 * width + 1)]
    for i, value in enumerate(values):
        b.add_op(f"make {i}", "aten.op.default", [x], [value, marks[i]])
    middle = marks[width]
    b.add_op("middle", "aten.op.default", marks[:width], [middle])
    for i, value in enumerate(values):
        b.add_op(f"read {i}", "aten.op.default", [value, middle], [marks[width + 1 + i]], phase=Phase.BACKWARD)
    return b.build(marks[width + 1 :])


def test_what_lives_at_a_cut_and_does_not_fit_goes_out_before_it_and_comes_back_after():
    graph = hourglass(10)
    bound = lower_bound(graph, machine(1e9, 2e9, 0.0), 4 * MB, np.full(len(graph.ops), 1e-6))
    away = 6 * MB / 1e9
    assert bound == pytest.approx(2 * away, rel=1e-3)


def test_compute_on_either_side_of_a_cut_hides_copies_of_that_side_only():
    graph = hourglass(10)
    seconds = np.array([1e-6 if op.phase is Phase.FORWARD else 0.01 for op in graph.ops])
    bound = lower_bound(graph, machine(1e9, 2e9, 0.0), 4 * MB, seconds)
    assert bound == pytest.approx(6 * MB / 1e9 + 0.1, rel=1e-3)


def updated(count, changed=True):
    """So many parameters of 1 MB, each read and, if asked for, updated."""
    b = GraphBuilder("updated")
    for i in range(count):
        w = b.add_tensor(f"w{i}", b.add_storage(f"w{i}", MB, Kind.PARAMETER), (MB // 4,))
        g = b.add_tensor(f"g{i}", b.add_storage(f"g{i}", 4, Kind.GRADIENT), (1,))
        b.add_op(f"make {i}", "aten.op.default", [w], [g])
        if changed:
            after = b.add_tensor(f"w{i}'", b.tensors[w].storage, (MB // 4,))
            b.add_op(f"update {i}", "aten.op.default", [w, g], [after], phase=Phase.OPTIMIZER)
    return b.build()


@pytest.mark.parametrize(("duplex", "expected"), [(2e9, 0.006), (1.5e9, 0.008)])
def test_updated_state_that_does_not_fit_goes_both_ways_each_step(duplex, expected):
    graph = updated(10)
    bound = lower_bound(graph, machine(1e9, duplex, 0.0), 4 * MB, np.zeros(len(graph.ops)))
    assert bound == pytest.approx(expected, rel=1e-3)


def test_unchanged_state_only_comes_in():
    graph = updated(10, changed=False)
    bound = lower_bound(graph, machine(1e9, 1.5e9, 0.0), 4 * MB, np.zeros(len(graph.ops)))
    assert bound == pytest.approx(0.006, rel=1e-3)


def test_an_op_without_a_workspace_counts_for_no_storage():
    # the storage that is last in the list is made by the last op: it does not live before
    b = GraphBuilder("last")
    first, second = (b.add_tensor(n, b.add_storage(n, MB, Kind.ACTIVATION), (MB // 4,)) for n in ("first", "second"))
    b.add_op("make", "aten.op.default", [], [first])
    b.add_op("make again", "aten.op.default", [first], [second])
    assert lower_bound(b.build(), machine(), 2 * MB, np.zeros(2)) == 0
    assert lower_bound(b.build(), machine(), MB, np.zeros(2)) == 0


def live_bytes(graph, order):
    """`[slots]`, bytes that exist while the op in each slot runs, what it makes left out, counted one by one."""
    uses = {}
    for slot, op in enumerate(order):
        for storage in {*graph.reads[op], *graph.writes[op], graph.ops[op].workspace} - {-1}:
            uses.setdefault(storage, []).append(slot)
    total = []
    for slot in range(len(order)):
        there = 0
        for storage, slots in uses.items():
            began = slots[0] < slot or graph.storages[storage].live_in
            needed = slots[-1] >= slot or graph.storages[storage].persistent
            there += graph.storages[storage].bytes * (began and needed)
        total.append(there)
    return total


@given(st.integers(0, 10**6))
@settings(max_examples=30 * EFFORT, deadline=None)
def test_what_is_live_at_once_is_so_in_every_order(seed):
    graph = random_graph(seed)
    least = live_sets(graph) @ [storage.bytes for storage in graph.storages]
    for shuffle in range(5):
        assert max(live_bytes(graph, random_order(graph, shuffle))) >= least.max(initial=0)


def test_all_values_that_wait_for_the_middle_are_live_there():
    graph = hourglass(7)
    sizes = [storage.bytes for storage in graph.storages]
    assert 7 * MB < (live_sets(graph) @ sizes).max() < 7 * MB + 100
