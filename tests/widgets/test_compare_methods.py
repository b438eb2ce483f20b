"""Speeds by method over budgets, as numbers and as a plot."""

import json
from dataclasses import replace

import pytest

from planner.errors import StowageError
from planner.swap import BudgetPoint
from tests.widgets.steps import MIB, by_hand, plan_by_hand
from tests.widgets.test_pareto import points
from widgets import figures
from widgets.info import get_compare_methods

GRAPH = by_hand()
NAME = "<i>joint</i> $x$"


def faster() -> list[BudgetPoint]:
    """Within 32 and 48 MiB a step takes 6 and 5 s; there is no plan within 24 MiB."""
    plan = plan_by_hand(GRAPH)
    return [
        BudgetPoint(
            budget * MIB, replace(plan, predicted=replace(plan.predicted, seconds=seconds)), 5.0, 5.0, 0, 0
        )
        for budget, seconds in ((48, 5.0), (32, 6.0))
    ]  # fmt: skip


def test_the_numbers_are_the_points_and_the_sentence_has_the_budget_where_methods_differ_most() -> None:
    info = get_compare_methods(GRAPH, {"swap": points(), "recompute": faster(), "nothing": []})
    swap, recompute = info.methods
    assert swap.share_of_ideal.tolist() == pytest.approx([5 / 7, 5 / 5.05, 1])
    assert swap.bytes_moved.tolist() == [8 * MIB, 4 * MIB, 0]
    assert recompute.budget_bytes.tolist() == [32 * MIB, 48 * MIB]
    assert recompute.share_of_ideal.tolist() == pytest.approx([5 / 6, 1])
    assert [recompute.share_at(budget * MIB) for budget in (24, 40, 64)] == [0, recompute.share_of_ideal[0], 1]
    assert info.budgets.tolist() == [24 * MIB, 32 * MIB, 48 * MIB]
    assert info.summary == "Within 24.0 MiB, swap reaches 71 % of ideal speed, recompute has no plan."


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_method_is_a_line_from_its_least_budget_to_the_largest_of_all(theme: str) -> None:
    figure = figures.compare_methods(GRAPH, {"swap": points()[:2], NAME: faster()}, theme=theme)
    data = json.loads(figure.to_json())
    assert data["layout"]["paper_bgcolor"] == {"light": "#ffffff", "dark": "#212121"}[theme]
    swap, joint = figure.data
    assert list(swap.x) == [24 * MIB, 32 * MIB, 48 * MIB]
    assert list(swap.y) == pytest.approx([500 / 7, 500 / 5.05, 500 / 5.05])
    assert list(joint.x) == [32 * MIB, 48 * MIB, 48 * MIB]
    assert swap.line.color != joint.line.color
    assert all("<i>" not in about for about in joint.customdata)
    key = " ".join(each.text for each in figure.layout.annotations if each.name == "key")
    assert "swap" in key
    assert "<i>" not in key


def test_what_cannot_be_compared_is_refused_in_a_sentence() -> None:
    with pytest.raises(StowageError, match="nothing to compare"):
        figures.compare_methods(GRAPH, {"swap": []})
    with pytest.raises(StowageError, match="not for"):
        figures.compare_methods(replace(GRAPH, ops=GRAPH.ops[:-1]), {"swap": points()})
    other = [replace(point, plan=replace(point.plan, machine="h200")) for point in faster()]
    with pytest.raises(StowageError, match="compare methods on one machine"):
        figures.compare_methods(GRAPH, {"swap": points(), "joint": other})
