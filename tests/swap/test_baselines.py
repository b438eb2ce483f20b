"""Every baseline swaps by the rule it is named after."""

from collections import Counter

import numpy as np
import pytest

from planner.graph import Kind, Phase
from planner.plan import validate
from planner.swap.baselines.registry import BASELINES
from planner.swap.search.inputs import make_problem
from tests.swap.random_graphs import machine
from tests.swap.test_plans import layered


def plan_of(name, budget, seconds=1e-4):
    graph = layered(20, parameters=4096)
    problem, _ = make_problem(graph, machine(1e9, 1.6e9, 0.0), budget, None, np.full(len(graph.ops), seconds))
    plan = BASELINES[name](problem)
    assert plan is None or validate(plan, graph) == []
    return graph, plan


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_runs_the_captured_order(name):
    graph, plan = plan_of(name, "100%" if name == "resident" else "80%")
    assert plan.method == name
    assert plan.order == tuple(range(len(graph.ops)))


def test_resident_moves_nothing_and_is_none_where_that_does_not_fit():
    assert plan_of("resident", "100%")[1].swap_ins == ()
    assert plan_of("resident", "90%")[1] is None


def test_on_demand_an_op_waits_for_every_copy_it_needs():
    _, plan = plan_of("on-demand", "50%")
    assert plan.swap_ins
    assert all(copy.start == copy.use for copy in plan.swap_ins)
    compute = plan.predicted.compute
    for copy, (begin, end) in zip(plan.swap_ins, plan.predicted.swap_in, strict=True):
        if copy.use < len(plan.order):
            assert begin >= compute[copy.use - 1, 1] - 1e-12 or copy.use == 0
            assert compute[copy.use, 0] >= end - 1e-12


def test_replayed_lru_makes_the_copies_of_on_demand_earlier():
    _, demand = plan_of("on-demand", "50%")
    _, replayed = plan_of("lru-prefetch", "50%")
    for queue in ("swap_outs", "swap_ins"):
        moved = [Counter(copy.storage for copy in getattr(plan, queue)) for plan in (demand, replayed)]
        assert moved[0] == moved[1]
    assert {(stay.storage, stay.offset) for stay in demand.residencies} == {
        (stay.storage, stay.offset) for stay in replayed.residencies
    }
    assert any(copy.start < copy.use for copy in replayed.swap_ins)
    assert replayed.predicted.seconds < demand.predicted.seconds


@pytest.mark.parametrize("name", ["tflms", "save-on-cpu"])
def test_frameworks_move_activations_only_and_keep_all_that_persists(name):
    graph, plan = plan_of(name, "80%")
    kinds = {graph.storages[copy.storage].kind for copy in (*plan.swap_outs, *plan.swap_ins)}
    assert kinds == {Kind.ACTIVATION}
    always = {stay.storage for stay in plan.residencies if (stay.start, stay.stop) == (0, len(plan.order))}
    assert {storage.id for storage in graph.storages if storage.persistent} <= always


def test_save_on_cpu_moves_everything_saved_for_backward_once_each_way():
    graph, plan = plan_of("save-on-cpu", "80%")
    forward = {op.id for op in graph.ops if op.phase is Phase.FORWARD}
    saved = {
        storage.id
        for storage in graph.storages
        if storage.kind is Kind.ACTIVATION
        and {op for op in forward if storage.id in graph.reads[op] or storage.id in graph.writes[op]}
        and {op.id for op in graph.ops if op.id not in forward and storage.id in graph.reads[op.id]}
    }
    moved = [copy.storage for copy in plan.swap_outs]
    assert moved
    assert set(moved) <= saved
    assert len(moved) == len(set(moved))
    # what is read again right after its last forward use has nowhere to go in between
    assert len(saved - set(moved)) <= 1
    assert sorted(moved) == sorted(copy.storage for copy in plan.swap_ins)
