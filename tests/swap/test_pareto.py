"""Step time over budgets, and what more memory or bandwidth buys."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from planner.cancel import CancelToken
from planner.errors import StowageError
from planner.graph import Graph, GraphBuilder
from planner.machine import Link
from planner.memory import step_peak
from planner.plan import validate
from planner.swap import lower_bound, simulate
from planner.swap.search.budget_sweep import BudgetPoint, sweep
from planner.swap.search.sensitivity import sensitivity
from tests.swap.random_graphs import ALIGNMENT, least_budget, machine, steps
from tests.swap.test_plans import layered

#: Copies take twice as long as ops, so that little memory costs time.
SLOW = machine(1e9, 1.4e9, 0.0)


def slow(graph: Graph) -> np.ndarray:
    return np.full(len(graph.ops), 3e-5)


@pytest.fixture(scope="module")
def swept() -> tuple[Graph, tuple[BudgetPoint, ...]]:
    graph = layered(8)
    return graph, sweep(graph, SLOW, seconds=slow(graph), time_limit_each=0.2)


def test_budgets_go_from_the_least_to_the_steps_own_peak(swept: tuple[Graph, tuple[BudgetPoint, ...]]) -> None:
    graph, points = swept
    budgets = [point.budget_bytes for point in points]
    assert len(points) == 8
    assert budgets == sorted(budgets)
    assert (budgets[0], budgets[-1]) == (least_budget(graph), step_peak(graph, ALIGNMENT))
    factors = np.array(budgets[1:]) / np.array(budgets[:-1])
    assert factors.max() / factors.min() < 1.01
    with pytest.raises(StowageError, match="too small"):
        sweep(graph, SLOW, [budgets[0] - 1], seconds=slow(graph))


def test_the_ends_are_what_they_must_be(swept: tuple[Graph, tuple[BudgetPoint, ...]]) -> None:
    _, points = swept
    assert points[0].percent_of_ideal < 90
    assert points[-1].percent_of_ideal == pytest.approx(100)
    assert points[0].bytes_moved > 0 == points[-1].bytes_moved


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps(most_layers=5))
def test_more_memory_is_never_slower_and_every_plan_fits_its_budget(step: tuple[Graph, list[float]]) -> None:
    graph, durations = step
    device, seconds = machine(1e8), np.array(durations)
    points = sweep(graph, device, seconds=seconds, time_limit_each=0.02)
    assert points
    for point in points:
        assert validate(point.plan, graph) == []
        assert point.plan.peak_bytes <= point.budget_bytes == point.plan.budget_bytes
        assert point.step_seconds == simulate(point.plan, graph, device, seconds).seconds
        assert lower_bound(graph, device, point.budget_bytes, seconds) <= point.bound_seconds * (1 + 1e-12) + 1e-18
        assert point.bound_seconds <= point.step_seconds
        sizes = [storage.bytes for storage in graph.storages]
        assert point.bytes_in == sum(sizes[copy.storage] for copy in point.plan.swap_ins)
        assert point.bytes_out == sum(sizes[copy.storage] for copy in point.plan.swap_outs)
    for less, more in pairwise(points):
        assert more.step_seconds <= less.step_seconds * (1 + 1e-9)
        assert more.bound_seconds <= less.bound_seconds


def test_budgets_are_read_as_anywhere_else_and_each_is_planned_for_once() -> None:
    graph = layered(4)
    peak = step_peak(graph, ALIGNMENT)
    points = sweep(graph, SLOW, ["100%", peak, f"{peak * 2}"], seconds=slow(graph), time_limit_each=0.1)
    assert [point.budget_bytes for point in points] == [peak, 2 * peak]


def test_a_sweep_that_is_cancelled_returns_what_it_has() -> None:
    graph = layered(8)
    said: list[str] = []
    points = sweep(
        graph, SLOW, seconds=slow(graph), time_limit_each=0.1, progress=lambda _, doing: said.append(doing),
        stop=CancelToken(lambda: len({doing for doing in said if doing.startswith("planning for")}) > 2),
    )  # fmt: skip
    assert 2 <= len(points) <= 3
    assert said[0].startswith("looking what the step takes")
    assert sweep(graph, SLOW, seconds=slow(graph), stop=CancelToken(lambda: True)) == ()


@pytest.mark.parametrize("after", range(4))
def test_a_sweep_can_be_cancelled_before_it_knows_its_budgets(after: int) -> None:
    """What the step takes, the least budget, and the first layouts: each is said, and none is finished after that."""
    graph = layered(40)
    said: list[str] = []
    points = sweep(
        graph, SLOW, seconds=slow(graph), progress=lambda _, doing: said.append(doing),
        stop=CancelToken(lambda: len(said) > after),
    )  # fmt: skip
    assert points == ()
    assert said[-1] == "done"
    assert not any(doing.startswith("planning for") for doing in said)


def test_a_step_without_tensors_has_one_point() -> None:
    b = GraphBuilder("empty hands")
    for number in range(3):
        b.add_op(f"op{number}", "aten.op.default", [], [])
    points = sweep(b.build([]), SLOW, time_limit_each=0.1)
    assert [point.plan.method for point in points] == ["resident"]
    assert points[0].percent_of_ideal == 100.0


def test_no_plan_is_faster_than_ideal_in_percent() -> None:
    graph = layered(8)
    seconds = np.random.default_rng(0).random(len(graph.ops))
    plan = sweep(graph, SLOW, [2 * step_peak(graph, ALIGNMENT)], seconds=seconds, time_limit_each=0)[0].plan
    point = BudgetPoint(1, plan, plan.predicted.seconds * (1 + 1e-14), 0.0, 0, 0)
    assert point.percent_of_ideal == 100.0


def test_more_memory_and_more_bandwidth_save_what_new_plans_save() -> None:
    graph = layered(8)
    peak, seconds = step_peak(graph, ALIGNMENT), slow(graph)
    budget = (least_budget(graph) + peak) // 3
    found = sensitivity(graph, SLOW, budget, memory=peak, bandwidth=1e12, seconds=seconds, time_limit_each=0.3)
    ideal = float(seconds.sum())
    assert found.memory.step_seconds == pytest.approx(ideal)
    assert found.memory.saved_seconds == pytest.approx(found.step_seconds - ideal)
    assert found.memory.percent == pytest.approx(100 * (1 - ideal / found.step_seconds))
    assert found.memory.most_seconds == pytest.approx(found.memory.saved_seconds)
    assert 0 < found.bandwidth.saved_seconds <= found.bandwidth.most_seconds
    assert "more memory saves" in str(found)
    assert "1e+03 GB/s more bandwidth saves" in str(found)


def test_nothing_is_bought_where_everything_fits_or_nothing_helps() -> None:
    graph = layered(4)
    found = sensitivity(graph, SLOW, "100%", seconds=slow(graph), time_limit_each=0.1)
    assert (found.memory.saved_seconds, found.bandwidth.saved_seconds) == (0, 0)
    assert all("buys nothing: the step already takes its ideal time" in line for line in str(found).splitlines())


def test_a_little_more_bandwidth_is_a_little_faster_and_never_slower() -> None:
    graph = layered(8)
    crawling = replace(SLOW, host_link=Link(2e7, 3e7, 0.0))
    found = sensitivity(
        graph, crawling, least_budget(graph), memory=64, bandwidth=2e7, seconds=slow(graph), time_limit_each=0.2
    )
    # with the link twice as fast, no step that is all copies takes less than half
    assert 0 < found.bandwidth.percent <= 50.001
    assert found.memory.saved_seconds >= 0


def test_a_sweep_of_a_method_has_only_plans_of_its_kind() -> None:
    graph = layered(8)
    points = {
        method: sweep(graph, SLOW, ["50%", "80%", "100%"], seconds=slow(graph), time_limit_each=0.1, method=method)
        for method in ("swap", "recompute", "joint")
    }
    assert not any(point.bytes_moved for point in points["recompute"])
    assert all(len(point.plan.order) == len(graph.ops) for point in points["swap"])
    assert all(point.bound_seconds <= point.step_seconds for each in points.values() for point in each)
    assert len(points["joint"]) == 3
    with pytest.raises(StowageError, match='"magic" is not a search method'):
        sweep(graph, SLOW, ["50%"], seconds=slow(graph), method="magic")
