"""Plans with collectives beside their ops: what the validator proves of them, and what is predicted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from planner.capture import capture
from planner.graph import Graph
from planner.machine import Collective, Link, Machine, collective_seconds, is_collective, op_seconds
from planner.partition import BASELINES, PartitionPlan, coarsen, counted_bytes, worker_graph
from planner.plan import (
    COMMUNICATION,
    Communication,
    PlanIndex,
    SwapOut,
    SwapPlan,
    device_queues,
    memory_over_time,
    plan_from_json,
    plan_to_json,
    trace_json,
    validate,
)
from planner.profile import machine
from planner.swap import plan_swaps
from planner.swap.problem.problem import build_problem, durations
from planner.swap.simulate.draft_timing import copy_seconds
from planner.swap.simulate.four_lanes import run_four_lanes
from planner.swap.simulate.streams import simulate
from planner.zoo import load

LINK = Link(1e9, 2e9, 5e-5)


def here() -> Machine:
    return replace(machine("laptop"), peer_link=LINK)


@cache
def worker_graphs(partition: str) -> list[Graph]:
    whole = capture(load("mlp:layers=2,hidden=24,batch=8,classes=4,optimizer=adam"), progress=False)
    plan = PartitionPlan.of(BASELINES[partition](coarsen(whole), 2))
    return [worker_graph(plan, whole, number) for number in range(plan.workers)]


@pytest.fixture(scope="module")
def graphs() -> list[Graph]:
    return worker_graphs("data-parallel")


@pytest.fixture(scope="module")
def graph(graphs: list[Graph]) -> Graph:
    return graphs[0]


@pytest.fixture(scope="module", params=["150%", "70%"])
def plan(graph: Graph, request: pytest.FixtureRequest) -> SwapPlan:
    made = plan_swaps(graph, here(), request.param, time_limit=0, progress=False)
    assert validate(made, graph) == []
    assert made.communications
    return made


def test_a_machine_that_cannot_communicate_beside_its_ops_keeps_nothing_for_it(graph: Graph, plan: SwapPlan) -> None:
    one_by_one = replace(here(), communicates_beside=False)
    made = plan_swaps(graph, one_by_one, plan.budget_bytes, time_limit=0, progress=False)
    seconds = op_seconds(graph, one_by_one)
    assert validate(made, graph) == []
    assert not made.communications
    assert sum(_residency_slots(made)) < sum(_residency_slots(plan))
    assert made.predicted.seconds >= seconds.sum() * (1 - 1e-9)
    assert build_problem(graph, one_by_one, made.budget_bytes, seconds).ideal_seconds == pytest.approx(seconds.sum())


def _residency_slots(plan: SwapPlan) -> list[int]:
    return [residency.stop - residency.start for residency in plan.residencies]


def with_entries(plan: SwapPlan, entries: list[Communication]) -> SwapPlan:
    queues = device_queues(plan.order, plan.swap_outs, plan.swap_ins, entries)
    spans = np.tile([0.0, plan.predicted.seconds], (len(entries), 1))
    return replace(
        plan, queues=queues, predicted=replace(plan.predicted, spans={**plan.predicted.spans, COMMUNICATION: spans})
    )


def changed(plan: SwapPlan, number: int, change: Callable[[Communication], Communication]) -> SwapPlan:
    entries = list(plan.communications)
    entries[number] = change(entries[number])
    return with_entries(plan, entries)


def test_a_plan_is_saved_with_its_lane_and_a_plan_without_one_has_none(plan: SwapPlan) -> None:
    loaded = plan_from_json(plan_to_json(plan))
    assert loaded.queues == plan.queues
    assert np.array_equal(loaded.predicted.communication, plan.predicted.communication)
    assert COMMUNICATION not in device_queues(plan.order)


def test_no_collective_may_go_on_for_longer_than_its_plan_says(plan: SwapPlan, graph: Graph) -> None:
    for number, entry in enumerate(plan.communications):
        if entry.use < len(plan.order):
            longer = changed(plan, number, lambda e: Communication(e.start, e.use + 1))
            said = [problem for problem in validate(longer, graph) if "predicted" not in problem]
            assert said, entry
            assert any(f"until slot {entry.use + 1}" in problem for problem in said)


def test_a_plan_in_which_compute_makes_every_collective_is_valid_and_not_faster(plan: SwapPlan, graph: Graph) -> None:
    alone = replace(plan, queues=device_queues(plan.order, plan.swap_outs, plan.swap_ins))
    alone = replace(alone, predicted=simulate(alone, graph, here(), op_seconds(graph, here())))
    assert validate(alone, graph) == []
    assert plan.predicted.seconds < alone.predicted.seconds


def test_only_collectives_run_beside_ops_in_the_order_of_slots(plan: SwapPlan, graph: Graph) -> None:
    beside = {entry.start for entry in plan.communications}
    slot = next(s for s, op in enumerate(plan.order) if not is_collective(graph.ops[op]) and s not in beside)
    another = with_entries(plan, sorted([*plan.communications, Communication(slot, slot + 1)], key=lambda e: e.start))
    assert any("is no collective" in problem for problem in validate(another, graph))
    swapped = with_entries(plan, [plan.communications[1], plan.communications[0], *plan.communications[2:]])
    assert any("has slot" in problem for problem in validate(swapped, graph))
    for entry in Communication(3, 3), Communication(-1, 4), Communication(2, len(plan.order) + 1):
        assert any("no such span" in problem for problem in validate(with_entries(plan, [entry]), graph))


def test_what_a_collective_writes_is_not_copied_out_before_it_is_done(plan: SwapPlan, graph: Graph) -> None:
    entry = max(plan.communications, key=lambda e: e.use - e.start)
    written = next(s for s in graph.writes[plan.order[entry.start]] if graph.storages[s].bytes)
    stop = next(r.stop for r in plan.residencies if r.storage == written and r.start == entry.start)
    copies = [c for c in plan.swap_outs if c.storage != written]
    early = SwapOut(written, entry.start, stop)
    queues = device_queues(
        plan.order, sorted([*copies, early], key=lambda c: c.ready), plan.swap_ins, plan.communications
    )
    name = graph.ops[plan.order[entry.start]].name
    assert any(f"does not wait for op {name}" in problem for problem in validate(replace(plan, queues=queues), graph))


def test_predictions_wait_for_what_the_plan_waits_for(plan: SwapPlan, graph: Graph) -> None:
    spans = plan.predicted.communication
    seconds = op_seconds(graph, here())
    for entry, (start, stop) in zip(plan.communications, spans, strict=True):
        assert stop - start == pytest.approx(seconds[plan.order[entry.start]])
        assert start >= plan.predicted.compute[entry.start, 1]
        if entry.use < len(plan.order):
            assert plan.predicted.compute[entry.use, 0] >= stop
    assert plan.predicted.seconds < op_seconds(graph, here()).sum() + 1e-12 or plan.swap_ins
    early = replace(
        plan, predicted=replace(plan.predicted, spans={**plan.predicted.spans, COMMUNICATION: spans - 1e-5})
    )
    assert any("predicted.communication" in problem for problem in validate(early, graph))


def test_without_collectives_four_lanes_are_the_three_of_the_kernel(plan: SwapPlan, graph: Graph) -> None:
    queues = device_queues(plan.order, plan.swap_outs, plan.swap_ins)
    alone, seconds = replace(plan, queues=queues), op_seconds(graph, here())
    expected = simulate(alone, graph, here(), seconds)
    problem = build_problem(graph, here(), plan.budget_bytes, seconds)
    work = copy_seconds(problem)
    total, compute, outs, ins, beside = run_four_lanes(
        PlanIndex(graph.with_workspaces(dict(plan.workspaces)), alone), durations(graph, seconds)[list(plan.order)],
        work[[c.storage for c in plan.swap_outs]], work[[c.storage for c in plan.swap_ins]], problem.link.shared,
    )  # fmt: skip
    assert total == pytest.approx(expected.seconds)
    assert len(beside) == 0
    for found, known in (compute, expected.compute), (outs, expected.swap_out), (ins, expected.swap_in):
        assert np.allclose(found, known)


def test_memory_counts_until_a_collective_is_done_and_traces_show_it(plan: SwapPlan, graph: Graph) -> None:
    index = PlanIndex(graph.with_workspaces(dict(plan.workspaces)), plan)
    assert memory_over_time(index, plan.predicted.spans).bytes.max() <= plan.peak_bytes
    assert (index.communication >= 0).any()
    names = [graph.ops[plan.order[entry.start]].name for entry in plan.communications]
    assert all(f'"name":"{name}"' in trace_json(graph, plan) for name in names)
    assert '"communication"' in trace_json(graph, plan)


@pytest.mark.parametrize("partition", ["data-parallel", "spartan", "all-row"])
def test_collectives_take_what_the_link_says_of_their_bytes(partition: str) -> None:
    graphs = worker_graphs(partition)
    slow = replace(machine("laptop"), peer_link=Link(1.0, 2.0, 0.0))  # a byte a second
    received = 0.0
    for graph in graphs:
        seconds = op_seconds(graph, slow) - slow.device.launch_seconds
        received += sum(seconds[op.id] for op in graph.ops if is_collective(op))
    assert received == pytest.approx(counted_bytes(graphs, (2,)), rel=1e-4)
    reduced = next(op for op in graphs[0].ops if op.target == "stowage.all_reduce.default")
    size = graphs[0].storages[graphs[0].tensors[reduced.outputs[0]].storage].bytes
    expected = collective_seconds(Collective.ALL_REDUCE, size, 2, LINK) + slow.device.launch_seconds
    assert op_seconds(graphs[0], here())[reduced.id] == pytest.approx(expected)
