"""Plans in which ops run again: valid, within their budget, never slower than without, and with eager's bits."""

import json
from dataclasses import replace
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import planner
from planner import StowageError, profile, zoo
from planner.graph import GraphBuilder, Kind, Phase
from planner.machine import Link
from planner.memory import step_peak
from planner.plan import recompute_seconds, validate
from planner.run import run
from planner.step import TrainStep
from planner.swap import BudgetTooSmallError, load_search, plan_swaps, search_swaps
from tests.effort import EFFORT
from tests.swap.forging import write
from tests.swap.random_graphs import ALIGNMENT, least_budget, machine, steps

GPT = "gpt:layers=3,hidden=64,sequence=64,batch=4,dropout=0.1"
LARGE = "gpt:layers=2,hidden=1024,sequence=1024,batch=16,dropout=0.1"
#: A link so slow that making values again is worth it.
SLOW = Link(2e7, 2e7, 1e-5)


class Residual(nn.Module):
    """A convolution beside a shortcut, with a batch norm, whose running statistics only the first run updates."""

    def __init__(self):
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)

    def forward(self, values):
        made = self.norm(self.convolution(values))
        made += values
        return torch.relu_(made)


def convolutions():
    torch.manual_seed(0)
    stem = nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
    model = nn.Sequential(*stem, *(Residual() for _ in range(8)))
    return TrainStep(model, torch.randn(4, 3, 64, 64), loss=lambda model, batch: model(batch).square().mean())


@pytest.fixture(scope="module")
def graph():
    return planner.capture(zoo.load(LARGE), progress=False)


@pytest.fixture(scope="module")
def found(graph):
    """The plan of a method, each searched for once."""
    return cache(lambda method: plan_swaps(graph, planner.machine("h200"), "40%", method=method, time_limit=None))


def budget_at(graph, share):
    """A budget between the least one and what the step takes."""
    least = least_budget(graph)
    return least + int(share * max(0, step_peak(graph, ALIGNMENT) - least))


@given(steps(), st.floats(0, 1))
@settings(max_examples=8 * EFFORT, deadline=None)
def test_plans_for_random_steps_are_valid_and_within_their_budget(step, share):
    graph, seconds = step
    budget = budget_at(graph, share)
    for method in ("recompute", "joint"):
        try:
            plan = plan_swaps(graph, machine(), budget, seconds=seconds, method=method, time_limit=0.2)
        except BudgetTooSmallError:
            assert method == "recompute"
            continue
        assert validate(plan, graph) == []
        assert plan.peak_bytes <= budget
        assert not (method == "recompute" and (plan.swap_ins or plan.swap_outs))


@given(steps(), st.floats(0, 1))
@settings(max_examples=2 * EFFORT, deadline=None)
def test_a_plan_that_may_run_ops_again_need_not_do_so(step, share):
    graph, seconds = step
    budget = budget_at(graph, share)
    swapped, joint = (
        plan_swaps(graph, machine(), budget, seconds=seconds, method=method, time_limit=None)
        for method in ("swap", "joint")
    )
    assert joint.predicted.seconds <= 1.0001 * swapped.predicted.seconds


def test_all_methods_together_are_no_slower_than_each(graph, found):
    plans = {method: found(method) for method in ("swap", "recompute", "joint", "auto")}
    assert all(validate(plan, graph) == [] for plan in plans.values())
    assert len(plans["auto"].order) > len(graph.ops) == len(plans["swap"].order)
    assert not plans["recompute"].swap_ins
    seconds = {method: plan.predicted.seconds for method, plan in plans.items()}
    assert seconds["auto"] <= 1.001 * min(seconds["swap"], seconds["recompute"], seconds["joint"])
    assert seconds["joint"] < seconds["swap"]


@pytest.mark.parametrize("method", ["recompute", "joint", "auto"])
def test_a_search_ends_when_all_was_tried(method):
    graph = planner.capture(zoo.load("mlp:layers=3"), progress=False)
    search = search_swaps(graph, planner.machine("v100-16gb"), "95%", method=method, time_limit=None)
    search.wait(seconds=120)
    assert search.progress.state == "done"


def test_no_more_runs_again_than_allowed(graph, found):
    gpu, free = planner.machine("h200"), found("joint")
    limit = recompute_seconds(free) / 2
    plan = plan_swaps(graph, gpu, "40%", method="joint", recompute_limit=limit, time_limit=None)
    assert 0 < recompute_seconds(plan) <= limit < recompute_seconds(free)


@pytest.mark.parametrize(
    ("limit", "method", "says"),
    [
        (0, "joint", "a recompute limit must be more than 0, got 0; for a plan in which nothing runs again"),
        ("-5%", "auto", 'take the method "swap"'),
        ("some", "joint", "a recompute limit of 'some' is not an amount"),
        (1.0, "swap", '"swap" runs each op once; drop the limit'),
    ],
)
def test_a_limit_that_means_nothing_is_refused(graph, limit, method, says):
    with pytest.raises(StowageError, match=says):
        search_swaps(graph, planner.machine("h200"), "40%", method=method, recompute_limit=limit)


def test_a_search_that_was_saved_goes_on_as_if_it_had_not_been(graph, found, tmp_path):
    gpu = planner.machine("h200")
    first = search_swaps(graph, gpu, "40%", method="joint", time_limit=None, evaluations=40)
    first.wait()
    first.save(tmp_path / "search.json")
    rest = load_search(tmp_path / "search.json", graph, gpu)
    rest.resume()
    assert rest.wait().predicted.seconds == found("joint").predicted.seconds


def test_a_file_in_which_a_swap_plan_runs_an_op_again_is_refused(graph, tmp_path):
    gpu, path = planner.machine("h200"), tmp_path / "search.json"
    search = search_swaps(graph, gpu, "40%", method="joint", time_limit=None, evaluations=40)
    assert len(search.wait().order) > len(graph.ops)
    search.save(path)
    body = json.loads(path.read_text())
    write(path, body | {"method": "swap", "families": [body["families"][0] | {"method_state": None, "stage": 0}]})
    with pytest.raises(StowageError, match=r"runs op .* again"):
        load_search(path, graph, gpu)


def test_a_plan_that_copies_is_none_of_recomputing_alone(graph, tmp_path):
    gpu, path = planner.machine("h200"), tmp_path / "search.json"
    with pytest.raises(StowageError, match=r'no plan that copies nothing was found within .* take the method "auto"'):
        plan_swaps(graph, gpu, "20%", method="recompute")
    search = search_swaps(graph, gpu, "40%", method="joint", time_limit=None, evaluations=40)
    assert search.wait().swap_ins
    search.save(path)
    body = json.loads(path.read_text())
    write(path, body | {"method": "recompute", "families": [body["families"][0] | {"method_state": None, "stage": 0}]})
    with pytest.raises(StowageError, match="damaged"):
        load_search(path, graph, gpu)


@pytest.mark.parametrize("make", [lambda: zoo.load(GPT), convolutions], ids=["attention", "convolutions"])
def test_what_runs_again_has_eagers_bits(make):
    step = make()
    ready = profile.prepare(step, "cpu", progress=False)
    slow = replace(ready.machine, host_link=SLOW)
    options = {"seconds": ready.seconds, "method": "joint", "time_limit": None, "evaluations": 100}
    plan = search_swaps(ready.graph, slow, "60%", **options).wait()
    again = [ready.graph.ops[op] for op in set(plan.order) if plan.order.count(op) > 1]
    assert again
    assert make is not convolutions or any(op.first_run_only for op in again)
    result = run(step, plan, steps=3, check=True, progress=False).wait()
    assert result.mismatches == ()
    assert result.peak_bytes <= plan.peak_bytes <= plan.budget_bytes


def test_an_operator_that_may_keep_something_does_not_run_again():
    def chain(target):
        build = GraphBuilder("one chain")
        weight = build.add_tensor("w", build.add_storage("w", 4096, Kind.PARAMETER), [1024])
        made = [weight]
        for name in "abcdef":
            made.append(build.add_tensor(name, build.add_storage(name, 4096, Kind.ACTIVATION), [1024]))
            build.add_op(name, target, made[-2:-1], made[-1:], phase=Phase.FORWARD)
        below = made[-1]
        for number, value in enumerate(reversed(made[1:-1])):
            gradient = build.add_tensor(f"g{number}", build.add_storage(f"g{number}", 4096, Kind.GRADIENT), [1024])
            build.add_op(f"back{number}", "aten.mul.Tensor", [value, below], [gradient], phase=Phase.BACKWARD)
            below = gradient
        return build.build([below])

    counted = {}
    for target in ("aten.sin.default", "mine.count.default"):
        graph = chain(target)
        plan = plan_swaps(graph, machine(1e6), 6 * 4096, seconds=[1e-6] * len(graph.ops), method="joint", time_limit=1)
        assert validate(plan, graph) == []
        counted[target] = len(plan.order) - len(graph.ops)
    assert counted["aten.sin.default"] > 0 == counted["mine.count.default"]
