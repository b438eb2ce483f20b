"""Which predicted timelines the validator refuses."""

import numpy as np
import pytest

from planner.plan import validate
from tests.plan.by_hand import plan, step
from tests.plan.changing import replace

TIMES = {
    "too few ops": ({"compute": np.zeros((6, 2))}, "predicted.compute has shape (6, 2) and should have (7, 2)"),
    "flat copies": ({"swap_out": np.zeros(4)}, "predicted.swap_out has shape (4,) and should have (2, 2)"),
    "samples differ": ({"sample_bytes": np.zeros(3, int)}, "predicted.sample_bytes has shape (3,) and should"),
    "not a number": ({"seconds": float("nan")}, "predicted.seconds is nan, which is no length of a step"),
    "negative step": ({"seconds": -1.0}, "predicted.seconds is -1.0"),
    "infinite": ({"swap_in": np.array([[4, 6], [7, np.inf]])}, "predicted.swap_in holds what is negative or no"),
    "negative bytes": ({"sample_bytes": np.array([-1, 0])}, "predicted.sample_bytes holds what is negative"),
    "too short": ({"seconds": 9.0}, "predicted.swap_out goes on after predicted.seconds"),
    "backwards": ({"swap_out": np.array([[3.0, 1], [9, 10]])}, "entry 0 of predicted.swap_out ends before it starts"),
    "two at once": (
        {"swap_in": np.array([[4.0, 8], [7, 8]])}, "entry 1 of predicted.swap_in ends before it starts, or starts"
    ),
    "op waits for swap-in": (
        {"swap_in": np.array([[4.0, 6.5], [7, 8]])}, "entry 4 of predicted.compute starts before what it waits for"
    ),
    "op waits for swap-out": (
        {"swap_out": np.array([[1, 3.5], [9, 10]])}, "entry 2 of predicted.compute starts before what it waits for"
    ),
    "swap-out waits for op": (
        {"swap_out": np.array([[0.5, 3], [9, 10]])}, "entry 0 of predicted.swap_out starts before what it waits for"
    ),
    "swap-in waits for op": (
        {"swap_in": np.array([[3.5, 6], [7, 8]])}, "entry 0 of predicted.swap_in starts before what it waits for"
    ),
    "samples descend": ({"sample_seconds": np.array([5.0, 0.0])}, "predicted.sample_seconds do not ascend"),
    "above the peak": ({"sample_bytes": np.array([321, 0])}, "predicted.sample_bytes reach 321, above the plan's peak"),
}  # fmt: skip


@pytest.mark.parametrize("fault", TIMES)
def test_a_predicted_timeline_that_cannot_be_is_refused(fault):
    fields, says = TIMES[fault]
    problems = validate(replace(plan(), predicted=replace(plan().predicted, **fields)), step())
    assert any(says in problem for problem in problems), problems


def test_a_plan_without_a_timeline_is_refused():
    assert validate(replace(plan(), predicted=None), step()) == ["the plan has no predicted timeline"]


def test_a_timeline_of_other_lanes_is_refused():
    lanes = {lane: spans for lane, spans in plan().predicted.spans.items() if lane.kind != "swap_in"}
    for other in ({"spans": lanes}, {"memory": {}}):
        problems = validate(replace(plan(), predicted=replace(plan().predicted, **other)), step())
        assert problems == ["the predicted timeline is not one of the plan's lanes and their device"]


def test_samples_may_share_a_moment_and_copies_may_take_no_time():
    still = replace(plan().predicted, sample_seconds=np.array([5.0, 5.0]), swap_in=np.array([[4.0, 4], [7, 8]]))
    assert validate(replace(plan(), predicted=still), step()) == []
