"""The picture of a search against the search itself, finished and as it goes on."""

import json
import threading
import weakref
from typing import Any

import pytest
from plotly.graph_objects import FigureWidget

import widgets
from planner.profile import machine
from planner.swap import SwapSearch, search_swaps
from tests.widgets.steps import real
from widgets import figures
from widgets.figures.notebook_figure import without_heading
from widgets.info import get_search_history

SPEC = "mlp:optimizer=adam"


def ended(budget: str = "60%") -> SwapSearch:
    search = search_swaps(real(SPEC)[1], machine("v100-16gb"), budget, evaluations=40)
    search.wait()
    return search


def test_every_new_best_plan_is_a_point_and_the_last_one_is_the_plan() -> None:
    search = ended()
    info = get_search_history(real(SPEC)[1], search)
    assert search.best is not None
    steps = [one.step_seconds for one in info.found]
    assert steps == sorted(set(steps), reverse=True)
    assert steps[-1] == search.best.predicted.seconds
    assert info.best == pytest.approx(info.ideal_seconds / search.best.predicted.seconds)
    assert info.best <= info.share(info.bound_seconds) <= 1
    assert info.seconds >= max(one.seconds for one in info.found)
    assert info.evaluations == search.progress.evaluations
    assert f"{100 * info.best:.1f} %" in info.summary


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("budget", ["60%", "100%"])
def test_what_is_drawn_are_the_points_and_a_bar_for_each_rule(budget: str, theme: Any) -> None:
    search = ended(budget)
    figure = figures.search_history(real(SPEC)[1], search, theme=theme)
    curve, bars = figure.data
    ideal = search.progress.ideal_seconds
    assert list(curve.y[:-1]) == pytest.approx([100 * ideal / point.step_seconds for point in search.history])
    assert list(bars.y) == [*search.baselines, "search"]
    drawn = dict(zip(bars.y, bars.text, strict=True))
    for name, seconds in search.baselines.items():
        share = f"{100 * ideal / seconds:.1f} %" if seconds else "no plan"
        assert drawn[name] == share
    assert drawn["search"] == f"{curve.y[-1]:.1f} %"
    assert any(each.text.startswith("lower bound on time") for each in figure.layout.annotations)
    assert json.loads(figure.to_json())["layout"]["meta"]["summary"].endswith(".")


def test_a_search_that_has_just_begun_is_drawn() -> None:
    search = search_swaps(real(SPEC)[1], machine("v100-16gb"), "60%")
    figure = figures.search_history(real(SPEC)[1], search)
    search.cancel()
    assert figure.layout.meta["summary"]


def test_a_watched_search_is_drawn_until_it_ends() -> None:
    graph = real(SPEC)[1]
    search = search_swaps(graph, machine("v100-16gb"), "60%", evaluations=40)
    shown = widgets.watch(graph, search)
    search.wait()
    followed(shown)
    last = without_heading(figures.search_history(graph, search))  # which is text of the page
    assert shown.layout == last.layout
    assert [list(trace.y) for trace in shown.data] == [list(trace.y) for trace in last.data]
    assert list(shown.data[1].x) == list(last.data[1].x)


def test_a_watched_search_that_nobody_holds_on_to_ends() -> None:
    search = search_swaps(real(SPEC)[1], machine("v100-16gb"), "60%", time_limit=None)
    gone = weakref.ref(search)
    shown = widgets.watch(real(SPEC)[1], search)
    del search
    followed(shown)
    assert gone() is None


def followed(shown: FigureWidget) -> None:
    """Wait until no thread changes a plot any more."""
    assert shown.layout.meta["summary"]
    for thread in threading.enumerate():
        if thread.name == "stowage-watch":
            thread.join(60)
            assert not thread.is_alive()
