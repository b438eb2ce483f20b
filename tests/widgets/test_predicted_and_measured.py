"""A run beside its prediction."""

from statistics import median

import pytest

from planner import zoo
from planner.capture import capture
from planner.errors import StowageError
from planner.plan import SwapPlan
from planner.profile import machine
from planner.run import RunResult, run
from planner.swap import plan_swaps
from tests.widgets.steps import by_hand, plan_by_hand
from widgets.info import get_predicted_and_measured


@pytest.fixture(scope="module")
def ran() -> tuple[SwapPlan, RunResult]:
    step = zoo.load("mlp:optimizer=adam")
    plan = plan_swaps(capture(step), machine("cpu"), "70%", method="swap")
    return plan, run(step, plan, steps=3, check=True).wait()


def test_the_numbers_are_the_plans_and_the_runs(ran: tuple[SwapPlan, RunResult]) -> None:
    plan, result = ran
    info = get_predicted_and_measured(plan, result)
    assert info.budget_bytes == plan.budget_bytes
    assert (info.predicted_peak_bytes, info.peak_bytes) == (plan.peak_bytes, result.peak_bytes)
    assert info.predicted.end == info.predicted_seconds == plan.predicted.seconds
    assert info.step_seconds == result.step_seconds
    assert info.eager_seconds == result.eager_step_seconds
    assert info.median_seconds == median(result.step_seconds)
    assert [curve.end for curve in info.measured] == [timeline.seconds for timeline in result.timelines]
    assert (info.mismatches, info.compared) == (0, result.compared)
    for curve in (info.predicted, *info.measured):
        assert (curve.seconds[1:] >= curve.seconds[:-1]).all()
        assert curve.bytes.max() <= plan.budget_bytes


def test_streams_are_busy_as_long_as_their_spans(ran: tuple[SwapPlan, RunResult]) -> None:
    plan, result = ran
    info = get_predicted_and_measured(plan, result)
    assert info.predicted_busy.swap_in == pytest.approx(sum(stop - start for start, stop in plan.predicted.swap_in))
    middle = sorted(result.timelines, key=lambda timeline: timeline.seconds)[1]
    assert info.measured_busy is not None
    assert info.measured_busy.compute == pytest.approx(sum(stop - start for start, stop in middle.compute))
    assert info.measured_busy.compute + info.measured_busy.idle == pytest.approx(middle.seconds)


def test_the_summary_says_it_in_one_sentence(ran: tuple[SwapPlan, RunResult]) -> None:
    summary = get_predicted_and_measured(*ran).summary
    assert "within the budget of" in summary
    assert f"{ran[1].compared} tensors compared, all equal to eager PyTorch's." in summary
    assert summary.count(". ") == 0


def test_the_run_of_another_plan_is_refused(ran: tuple[SwapPlan, RunResult]) -> None:
    with pytest.raises(StowageError, match="not one of this plan"):
        get_predicted_and_measured(plan_by_hand(by_hand()), ran[1])
