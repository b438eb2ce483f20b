"""Ops that run again make eager's bits again: random numbers and running statistics among them."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch import nn

from planner.errors import StowageError
from planner.graph import Graph, Op
from planner.plan import PlanIndex, SwapPlan, validate
from planner.profile import prepare
from planner.run import run
from planner.run.executor.executor import reordered
from planner.step import TrainStep
from tests.effort import combinations
from tests.run.lazy_device import SCHEDULES
from tests.run.recomputing import recomputing_plan, repeatable
from tests.run.steps import ALL, branches
from tests.run.test_races import device_for, run_on, step_of, without
from tests.run.test_random_order import Weighted, backwards_order

SAMPLE = 4


@cache
def graph_of(name: str) -> Graph:
    return prepare(step_of(name)[0], "cpu").graph


@cache
def plan_of(name: str) -> SwapPlan:
    graph = graph_of(name)
    plan = recomputing_plan(graph, repeatable(graph)[::2], swapped=8)
    assert validate(plan, graph) == []
    return plan


def runs_again(graph: Graph, plan: SwapPlan) -> list[Op]:
    return [graph.ops[plan.order[slot]] for slot in PlanIndex(graph, plan).repeats]


@pytest.mark.parametrize("name", ALL)
def test_a_step_that_runs_ops_again_has_eagers_bits_and_takes_what_was_planned(name: str) -> None:
    graph, plan = graph_of(name), plan_of(name)
    assert len(runs_again(graph, plan)) > 4
    if name in ("convolutions", "gpt"):
        assert plan.peak_bytes < recomputing_plan(graph, (), swapped=8).peak_bytes
    result = run(ALL[name](), plan, steps=3, check=True, stress=True).wait()
    assert result.mismatches == ()
    assert result.peak_bytes <= result.predicted_peak_bytes == plan.peak_bytes


def test_batch_norms_and_random_ops_are_among_what_runs_again() -> None:
    assert any(op.first_run_only for op in runs_again(graph_of("convolutions"), plan_of("convolutions")))
    assert sum(op.random for op in runs_again(graph_of("gpt"), plan_of("gpt"))) > 1
    assert not reordered(graph_of("gpt"), plan_of("gpt"))


@pytest.mark.parametrize(("name", "schedule"), combinations(list(ALL), [*SCHEDULES, 1, 2]))
def test_nothing_races_in_any_order_that_events_allow(name: str, schedule: str | int) -> None:
    device = device_for(plan_of(name), schedule)
    assert run_on(device, name, plan_of(name))
    assert device.races == []
    assert device.void_waits == 0
    assert device.waits > 8


@pytest.mark.parametrize("name", ALL)
def test_no_wait_can_be_left_out(name: str) -> None:
    whole = device_for(plan_of(name), "copies first")
    assert run_on(whole, name, plan_of(name), stress=True)
    assert whole.races == []
    per_step = whole.waits // 2
    for wait in range(1, per_step + 1, max(1, per_step // SAMPLE)):
        races, wrong = without(wait, name, plan_of(name))
        if not races and not wrong:
            races, _ = without(wait, name, plan_of(name), stress=True)
        assert races, f"without wait {wait} of {per_step} nothing races"


def test_draws_are_repeated_where_first_runs_change_places_too() -> None:
    step = branches()
    graph = prepare(step, "cpu").graph
    random = [group for group in repeatable(graph) if any(graph.ops[op].random for op in group)]
    plan = recomputing_plan(graph, random, order=backwards_order(graph))
    assert validate(plan, graph) == []
    assert reordered(graph, plan)
    assert sum(op.random for op in runs_again(graph, plan)) == 2
    assert run(step, plan, steps=3, check=True, stress=True).wait().mismatches == ()


def test_an_op_whose_number_of_draws_nobody_knows_is_repeated_all_the_same() -> None:
    step = TrainStep(Weighted, lambda: torch.randn(4, 8), loss=lambda model, batch: model(batch))
    graph = prepare(step, "cpu").graph
    plan = recomputing_plan(graph, repeatable(graph))
    assert "aten.poisson.default" in {op.target for op in runs_again(graph, plan)}
    assert run(step, plan, steps=3, check=True).wait().mismatches == ()


def test_what_cannot_run_again_with_the_same_bits_is_refused() -> None:
    """Statistics without weights decide how precise the results are, so the kernel cannot be called without them."""

    def build() -> nn.Module:
        return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8, affine=False), nn.Tanh())

    step = TrainStep(build, lambda: torch.randn(4, 6), loss=lambda m, x: m(x).sum(), autocast=torch.bfloat16)
    graph = prepare(step, "cpu").graph
    norm = next(op for op in graph.ops if "native_batch_norm.default" in op.target)
    assert norm.first_run_only == ()
    plan = recomputing_plan(graph, [(norm.id,)])
    with pytest.raises(StowageError, match=r"op 1/native_batch_norm runs again .* update 1.running_mean twice in one"):
        run(step, plan).wait()
