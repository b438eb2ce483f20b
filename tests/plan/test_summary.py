"""The key figures of a plan; whether it is valid is what the validator says."""

import pytest

from planner.plan import PlanSummary, gap_percent, percent_of_ideal, validate
from tests.plan.by_hand import plan, step
from tests.plan.changing import replace


def test_the_figures_of_the_plan_by_hand():
    summary = PlanSummary(step(), plan(), ideal_seconds=7.0, bound_seconds=8.0)
    assert (summary.step_seconds, summary.stall_seconds) == (10.0, 3.0)
    assert (summary.bytes_in, summary.bytes_out, summary.moved) == (128, 128, 2)
    assert summary.percent_of_ideal == pytest.approx(70)
    assert summary.gap_to_bound_percent == pytest.approx(25)
    assert summary.valid
    assert PlanSummary(step(), plan(), 7.0).gap_to_bound_percent is None


def test_there_is_no_gap_where_a_step_and_its_bound_differ_by_rounding_alone():
    bound = sum([0.1] * 10)  # 0.9999999999999999
    assert bound < 1.0
    assert gap_percent(bound, 1.0) == 0
    assert gap_percent(1.0, bound) == 0
    assert gap_percent(1.0, 1.0 + 1e-6) == pytest.approx(1e-4)


def test_it_is_valid_if_the_validator_says_so():
    wrong = replace(plan(), swap_outs=plan().swap_outs[1:])
    summary = PlanSummary(step(), wrong, 7.0)
    assert not summary.valid
    assert list(summary.problems) == validate(wrong, step())


def test_a_plan_is_valid_for_a_larger_budget_and_not_for_less_than_its_peak():
    first = plan()
    known = PlanSummary(step(), first, 7.0)
    for budget, valid in ((320, True), (4096, True), (319, False)):
        other = replace(first, budget_bytes=budget)
        assert known.is_of(other)
        assert PlanSummary(step(), other, 7.0, known=known).valid is valid
        assert (validate(other, step()) == []) is valid


def test_the_answer_on_another_plan_is_not_used():
    wrong = replace(plan(), swap_outs=plan().swap_outs[1:])
    known = PlanSummary(step(), plan(), 7.0)
    assert known.valid
    assert not known.is_of(wrong)
    assert not PlanSummary(step(), wrong, 7.0, known=known).valid


def test_no_rounding_makes_a_plan_faster_than_ideal_or_than_its_bound():
    assert percent_of_ideal(1.0 + 1e-12, 1.0) == 100.0
    assert percent_of_ideal(0.0, 0.0) == 100.0
    assert gap_percent(1.0 + 1e-12, 1.0) == 0.0
    assert gap_percent(0.0, 1.0) == 0.0
