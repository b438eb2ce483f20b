"""Step time over budgets, as numbers and as a plot."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from planner.errors import StowageError
from planner.graph import fingerprint
from planner.swap.search.budget_sweep import BudgetPoint
from tests.widgets.steps import MIB, by_hand, plan_by_hand
from widgets import figures
from widgets.info import get_pareto

GRAPH = by_hand()
NAME = "<b>100%</b> $x$"


def points(*, name: str | None = None) -> list[BudgetPoint]:
    """Within 24, 32 and 48 MiB a step takes 7, 5.05 and 5 s."""
    plan = plan_by_hand(GRAPH)
    if name is not None:
        plan = replace(plan, graph=fingerprint(replace(GRAPH, name=name)))
    return [
        BudgetPoint(
            budget * MIB, replace(plan, predicted=replace(plan.predicted, seconds=seconds)), 5.0, bound, moved * MIB, 0
        )
        for budget, seconds, bound, moved in ((24, 7.0, 5.5, 8), (32, 5.05, 5.0, 4), (48, 5.0, 5.0, 0))
    ]


def test_the_numbers_are_the_points() -> None:
    info = get_pareto(GRAPH, points()[::-1])
    assert info.budget_bytes.tolist() == [24 * MIB, 32 * MIB, 48 * MIB]
    assert info.step_seconds.tolist() == [7, 5.05, 5]
    assert info.bound_seconds.tolist() == [5.5, 5, 5]
    assert info.bytes_in.tolist() == [8 * MIB, 4 * MIB, 0]
    assert info.summary == (
        "32.0 MiB is enough for a step within 2 % of the ideal 5.00 s; "
        "within 24.0 MiB, the step takes 7.00 s, 71 % of ideal speed."
    )
    assert get_pareto(GRAPH, points()[1:]).summary.startswith("32.0 MiB is enough for a step within 2 %")
    assert get_pareto(GRAPH, points()[:1]).summary.startswith("No budget here comes within 2 %")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_it_is_drawn_as_stairs_between_which_every_budget_has_a_plan(theme: str, count: int) -> None:
    figure = figures.pareto(GRAPH, points()[:count], theme=theme)
    data = json.loads(figure.to_json())
    assert data["layout"]["paper_bgcolor"] == {"light": "#ffffff", "dark": "#212121"}[theme]
    assert data["layout"]["meta"]["summary"] == get_pareto(GRAPH, points()[:count]).summary
    markers = next(trace for trace in figure.data if trace.name == "step")
    assert all("lower bound" in about for about in markers.customdata)
    assert [each.text.count("lower&nbsp;bound") for each in figure.layout.annotations if each.name == "key"] == [1]
    assert list(markers.x) == [24 * MIB, 32 * MIB, 48 * MIB][:count]
    assert list(markers.y) == [7, 5.05, 5][:count]
    _, bound, step, _ = (trace for trace in figure.data if trace.mode == "lines" and trace.yaxis is None)
    for at, found, least in ((28 * MIB, 7.0, 5.0), (40 * MIB, 5.05, 5.0))[: count - 1]:
        assert height(step, at) == found
        assert height(bound, at) == least
    low, high = figure.layout.xaxis.range
    assert low < np.log10(24 * MIB) < high
    assert list(figure.layout.xaxis.tickvals)[-1] == 24 * MIB


def height(stairs: object, at: float) -> float:
    """How high a staircase is over a place between its corners."""
    x, y = np.array(stairs.x), np.array(stairs.y)
    corner = int(np.flatnonzero(x < at)[-1])
    assert y[corner] == y[corner + 1]
    return float(y[corner])


def test_names_are_shown_and_never_read_as_markup() -> None:
    graph = replace(GRAPH, name=NAME)
    figure = figures.pareto(graph, points(name=NAME))
    assert "<b>100" not in figure.layout.title.text
    assert "&lt;b&gt;100&#37;" in figure.layout.title.text


def test_nothing_to_draw_and_points_of_another_graph_are_refused() -> None:
    with pytest.raises(StowageError, match="no point to draw"):
        figures.pareto(GRAPH, [])
    with pytest.raises(StowageError, match="not for"):
        figures.pareto(replace(GRAPH, ops=GRAPH.ops[:-1]), points())
