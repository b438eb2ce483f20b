"""The swap planner over a pool: figures 1 and 3, and that every plan it makes is proven valid."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.graph import GraphBuilder, Kind
from planner.machine import Device, Link, Machine
from planner.plan import validate
from planner.swap.draft.absences import NEVER
from planner.swap.methods.swapadvisor.allocation_gene import Allocation
from planner.swap.methods.swapadvisor.individual import random_schedule
from planner.swap.methods.swapadvisor.pool import default_allocation, demand_of, fits, pool_of, random_allocation
from planner.swap.methods.swapadvisor.pool_planner import pool_planner
from planner.swap.problem.problem import build_problem
from tests.swap.random_graphs import machine, steps

MB = 1 << 20
KINDS = {"W": Kind.PARAMETER, "A": Kind.ACTIVATION}


def one_megabyte_a_second():
    """Both ways at once; a unit of the figures is a second."""
    device = Device("toy", "cpu", 1 << 30, 1e11, {"float32": 1e12}, alignment=64)
    return Machine("toy", (device,), Link(MB, 2 * MB, 0.0), 1 << 40)


def problem_of(sizes, ops, kinds, seconds, memory):
    """A graph from megabytes by name and (op, inputs, output); and the storages' ids by name."""
    b = GraphBuilder("figure")
    tensors = {}
    for name, size in sizes.items():
        storage = b.add_storage(name, size * MB, kinds.get(name, KINDS[name[0]]))
        tensors[name] = b.add_tensor(name, storage, (size * MB // 4,))
    for name, inputs, output in ops:
        b.add_op(name, "aten.op.default", [tensors[x] for x in inputs], [tensors[output]] if output else [])
    outputs = [tensors[name] for name, kind in kinds.items() if kind is Kind.OUTPUT]
    return build_problem(b.build(outputs), one_megabyte_a_second(), memory * MB, np.array(seconds))


LEFT_FIRST = ["Data", "Conv1", "Conv2", "Conv3", "Conv4", "Concat"]
RIGHT_FIRST = ["Data", "Conv2", "Conv3", "Conv4", "Conv1", "Concat"]
COARSE, FINE = Allocation(np.array([0, 0]), np.array([5])), Allocation(np.array([0, 1]), np.array([8, 1]))


def figure_1():
    forward = [
        ("Data", ["A0"], None), ("Conv1", ["A0", "W1"], "A1"), ("Conv2", ["A0", "W2"], "A2"),
        ("Conv3", ["A2", "W3"], "A3"), ("Conv4", ["A3", "W4"], "A4"), ("Concat", ["A1", "A4"], "A5"),
    ]  # fmt: skip
    backward = [(f"needs A{k}", [f"A{k}"], None) for k in (4, 3, 2, 1, 0)]
    sizes = {"A0": 1, "A1": 1, "A2": 2, "A3": 1, "A4": 1, "A5": 2, "W1": 1, "W2": 1, "W3": 1, "W4": 1}
    kinds = {"A0": Kind.INPUT, "A5": Kind.OUTPUT}
    return problem_of(sizes, forward + backward, kinds, [1.0] * 6 + [0.0] * 5, memory=10)


@pytest.mark.parametrize(
    ("schedule", "pool", "units", "units_by_slots"),
    [(LEFT_FIRST, COARSE, 6, 6), (RIGHT_FIRST, COARSE, 7, 8), (RIGHT_FIRST, FINE, 6, 6), (LEFT_FIRST, FINE, 7, 7)],
    ids=["b", "c", "d", "e"],
)
def test_figure_1_which_schedule_is_best_depends_on_the_pool(schedule, pool, units, units_by_slots):
    """The four times, when Concat is done, by the paper's control edges.

    The figure leaves open what follows Concat and which tensors must survive it. Read as a part of inference, where
    activations die with their last use, nothing would ever leave the fine pool and all four times would be 6. All four
    come out when the activations are still needed afterwards, as in training: so ops of no duration that need them
    follow, from last to first. Data takes a unit, its tensor A0 has a copy on the host, parameters begin where a
    repeated step leaves them, and a victim must have been used last as long ago as its copy takes.

    By slots, c takes 8: W1 comes into the memory of W4 in the very slot that waits for A2 to leave, and in a plan a
    swap-in waits for all that its slot waits for. The conclusion is the same: each pool has another best schedule.
    """
    problem = figure_1()
    names = [op.name for op in problem.graph.ops]
    order = np.array([names.index(name) for name in schedule] + list(range(6, 11)), np.int32)
    planner = pool_planner(problem, demand_of(problem), victim_threshold=1.0)
    timed = planner.time(order, planner.find_cyclic(order, pool_of(planner.demand, pool)))
    assert timed.by_edges[5] + 1 == units
    assert timed.timing.compute[5, 1] == units_by_slots
    assert validate(planner.plan(order, pool), problem.graph) == []


def test_figure_3_who_replaces_whom_and_which_control_edges_follow():
    """W3 replaces W1 and A3 replaces W2, with unit tensors on a device of four.

    The figure shows three ops; that A1 and A2 must stay shows only in that neither is replaced. Here a fourth op needs
    them. W2, though used further in the future than W1, is not chosen for W3: its last use was just now.
    """
    sizes = dict.fromkeys(["W1", "W2", "W3", "A1", "A2", "A3"], 1)
    ops = [
        ("op1", ["W1"], "A1"),
        ("op2", ["A1", "W2"], "A2"),
        ("op3", ["A2", "W3"], "A3"),
        ("op4", ["A1", "A2", "A3"], None),
    ]
    problem = problem_of(sizes, ops, {}, [1.0] * 4, memory=4)
    order = np.arange(4, dtype=np.int32)
    planner = pool_planner(problem, demand_of(problem), victim_threshold=1.0)
    cyclic_pool = planner.find_cyclic(order, pool_of(planner.demand, Allocation(np.array([0]), np.array([4]))))
    names = [storage.name for storage in problem.graph.storages]
    absences, moves = planner.scratch.absences, planner.scratch.moves
    evicted = {names[absences.storage[k]]: k for k in range(cyclic_pool.absence_count) if absences.ready[k] >= 0}
    reloaded = {
        names[absences.storage[k]]: k
        for k in range(cyclic_pool.absence_count)
        if absences.use[k] != NEVER and absences.ready[k] < 0
    }
    # last use of the victim -> (nothing to copy out, it is unchanged) -> the newcomer's way in -> its op
    assert absences.ready[evicted["W1"]] == 0
    assert moves.free_since[reloaded["W3"]] == 1
    assert absences.use[reloaded["W3"]] == 2
    # last use of the victim -> the op that makes the newcomer
    assert absences.ready[evicted["W2"]] == 1
    assert moves.needed_in[evicted["W2"]] == 2
    plan = planner.plan(order, Allocation(np.array([0]), np.array([4])))
    offset_of = {(names[r.storage], r.start): r.offset for r in plan.residencies}
    start = {name: offset for (name, slot), offset in offset_of.items() if slot < 2}
    assert offset_of["W3", 1] == start["W1"]
    assert offset_of["A3", 2] == start["W2"]
    assert validate(plan, problem.graph) == []


def test_an_op_waits_for_the_victim_of_what_it_makes_to_be_copied_out():
    """The edges that figure 3 has no need for. W1 is there all the time; A1 makes room for A2 and returns for op4.

    op1 0-1, A1 out 1-2, op2 2-3, op3 3-4, A1 in 4-5, op4 5-6.
    """
    sizes = dict.fromkeys(["A1", "A2", "W1"], 1)
    ops = [("op1", [], "A1"), ("op2", [], "A2"), ("op3", ["A2", "W1"], None), ("op4", ["A1"], None)]
    problem = problem_of(sizes, ops, {}, [1.0] * 4, memory=2)
    planner = pool_planner(problem, demand_of(problem), victim_threshold=0.0)
    plan = planner.plan(np.arange(4, dtype=np.int32), Allocation(np.array([0]), np.array([2])))
    assert validate(plan, problem.graph) == []
    assert plan.predicted.compute.tolist() == [[0, 1], [2, 3], [3, 4], [5, 6]]
    assert plan.predicted.swap_out.tolist() == [[1, 2]]
    assert plan.predicted.swap_in.tolist() == [[4, 5]]


def test_a_pool_larger_than_memory_is_no_individual():
    sizes = {"A1": 1}
    problem = problem_of(sizes, [("op1", [], "A1")], {}, [1.0], memory=2)
    planner, order = pool_planner(problem, demand_of(problem), 0.0), np.zeros(1, np.int32)
    assert planner.seconds(order, Allocation(np.array([0]), np.array([2]))) == 1.0
    assert planner.seconds(order, Allocation(np.array([0]), np.array([3]))) == np.inf


@given(steps(), st.integers(0, 2**32), st.floats(0.0, 1.5), st.sampled_from([0.0, 1.0, 4.0]))
@settings(max_examples=80, deadline=None)
def test_every_plan_is_valid_and_takes_the_time_it_was_chosen_for(step, seed, share, threshold):
    graph, seconds = step
    total = sum(storage.bytes for storage in graph.storages)
    problem = build_problem(graph, machine(), max(64, int(share * total)), np.array(seconds))
    demand, random = demand_of(problem), np.random.default_rng(seed)
    planner = pool_planner(problem, demand, threshold)
    captured = np.arange(problem.ops, dtype=np.int32)
    pairs = [
        (captured, default_allocation(problem, demand)),
        (random_schedule(problem, captured, random), random_allocation(demand, random)),
    ]
    for order, allocation in pairs:
        time = planner.seconds(order, allocation)
        assert np.isfinite(time) == fits(demand, allocation)
        if np.isfinite(time):
            plan = planner.plan(order, allocation)
            assert validate(plan, graph) == []
            assert plan.order == tuple(order.tolist())
            assert plan.peak_bytes <= problem.budget
            assert plan.predicted.seconds == pytest.approx(time, rel=1e-12, abs=1e-15)
            bases = set(pool_of(demand, allocation).offset.tolist())
            assert {stay.offset for stay in plan.residencies} <= bases


@given(steps())
@settings(max_examples=30, deadline=None)
def test_with_an_object_for_every_storage_nothing_moves(step):
    graph, seconds = step
    problem = build_problem(graph, machine(), 1 << 30, np.array(seconds))
    demand = demand_of(problem)
    everything = Allocation(np.arange(len(demand.sizes)), demand.members)
    plan = pool_planner(problem, demand, 1.0).plan(np.arange(problem.ops, dtype=np.int32), everything)
    assert (plan.swap_outs, plan.swap_ins) == ((), ())
    assert plan.predicted.seconds == pytest.approx(sum(seconds))
