"""The time of a step before a plan is searched for: no promise, but never faster than any plan can be."""

from __future__ import annotations

from math import inf

import pytest

from planner import zoo
from planner.cancel import CancelToken
from planner.capture import capture
from planner.machine import op_seconds
from planner.profile import machine
from planner.swap import estimated_seconds, lower_bound, peak_of, plan_swaps

MODELS = ["mlp:layers=4,hidden=256,batch=512", "rnn:layers=1,steps=6", "gpt:layers=2,sequence=64"]


@pytest.mark.parametrize("model", MODELS)
def test_it_is_the_ideal_where_all_fits_then_at_least_the_bound_and_infinite_where_nothing_fits(model: str) -> None:
    graph, device = capture(zoo.load(model)), machine("v100-16gb")
    seconds, peak = op_seconds(graph, device), peak_of(graph, device.device.alignment)
    estimates = [
        estimated_seconds(graph, device, budget, seconds, CancelToken()) for budget in (2 * peak, peak * 7 // 10, 1)
    ]
    assert estimates[0] == pytest.approx(float(seconds.sum()))
    assert estimates[1] >= lower_bound(graph, device, peak * 7 // 10, seconds) * (1 - 1e-9)
    assert estimates[2] == inf


def test_less_memory_takes_longer_as_it_does_by_plans() -> None:
    graph, device = capture(zoo.load(MODELS[0])), machine("laptop")
    seconds, peak = op_seconds(graph, device), peak_of(graph, device.device.alignment)
    budgets = [peak * share // 10 for share in (9, 7, 5)]
    planned = [plan_swaps(graph, device, budget, method="calendar", progress=False) for budget in budgets]
    estimates = [estimated_seconds(graph, device, budget, seconds, CancelToken()) for budget in budgets]
    assert estimates == sorted(estimates)
    assert [plan.predicted.seconds for plan in planned] == sorted(plan.predicted.seconds for plan in planned)
