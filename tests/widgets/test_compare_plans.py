"""Two plans in one picture: their curves, and when what they treat differently is on the device."""

from typing import Any

import pytest

import widgets
from planner import StowageError
from planner.plan import PlanComparison, compare_plans
from tests.plan import by_hand
from tests.plan.changing import replace
from tests.plan.test_comparison import everything_stays
from widgets.info import get_compare_plans


def found(first_budget: int = 1024) -> PlanComparison:
    first = replace(everything_stays(), budget_bytes=first_budget)
    return compare_plans(by_hand.step(), first, replace(by_hand.plan(), budget_bytes=1024))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_there_is_a_curve_for_each_plan_and_a_bar_for_each_time_on_the_device(theme: Any) -> None:
    comparison = found()
    figure = widgets.compare_plans(comparison, theme=theme)
    curves = {each.name: each for each in figure.data if each.type == "scatter" and each.name}
    bars = {each.name: each for each in figure.data if each.type == "bar"}
    assert list(curves) == list(bars) == ["first plan", "second plan"]
    memory = comparison.second_memory
    assert curves["second plan"].x[:-1].tolist() == memory.seconds.tolist()
    assert curves["second plan"].y[:-1].tolist() == memory.bytes.tolist()
    for name, spans in (
        ("first plan", [one.first_spans for one in comparison.tensors]),
        ("second plan", [one.second_spans for one in comparison.tensors]),
    ):
        drawn = [(base, base + width) for base, width in zip(bars[name].base, bars[name].x, strict=True)]
        assert drawn == [span for of_one in spans for span in of_one]
    texts = " ".join(note.text for note in figure.layout.annotations)
    assert all(one.name in texts for one in comparison.tensors)
    assert figure.layout.meta["summary"] == get_compare_plans(comparison).summary
    assert "they treat 2 tensors of 128 B differently" in figure.layout.meta["summary"]


def test_the_budget_is_drawn_if_it_is_that_of_both() -> None:
    for comparison, drawn in ((found(), True), (found(first_budget=2048), False)):
        texts = [note.text for note in widgets.compare_plans(comparison).layout.annotations]
        assert any(text.startswith("budget") for text in texts) is drawn


def test_of_equal_plans_there_are_the_curves_alone() -> None:
    figure = widgets.compare_plans(compare_plans(by_hand.step(), by_hand.plan(), by_hand.plan()))
    assert {each.type for each in figure.data} == {"scatter"}
    assert "they treat all tensors alike" in figure.layout.meta["summary"]


def test_something_else_is_refused() -> None:
    with pytest.raises(StowageError, match=r"a dict is not what planner\.compare_plans returns"):
        widgets.compare_plans({})  # type: ignore[arg-type]
