"""The picture of a search against the search itself, finished and as it goes on."""

import json
import threading
import weakref
from dataclasses import replace
from typing import Any

import pytest
from comm.base_comm import BaseComm
from plotly.graph_objects import FigureWidget

import widgets
from planner.profile import machine
from planner.swap import BudgetTooSmallError, SwapSearch, search_swaps
from tests.widgets.steps import real
from widgets import figures
from widgets.figures.live.live_plot import LivePlot
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


def test_a_search_that_failed_says_why() -> None:
    graph = replace(real("gpt:layers=12,hidden=16,heads=2,sequence=8")[1])  # whose peak nobody has worked out yet
    search = search_swaps(graph, machine("v100-16gb"), "1%")
    with pytest.raises(BudgetTooSmallError) as failed:
        search.wait(progress=False)
    summary = get_search_history(graph, search).summary
    assert summary.startswith("The search failed after ")
    assert summary.lower().endswith(f". {failed.value}.".lower())


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


class Sent(BaseComm):
    """Keeps what is sent to the page."""

    def __init__(self) -> None:
        self.headings: list[str] = []
        super().__init__(target_name="jupyter.widget")

    def publish_msg(self, msg_type: str, data: Any = None, *args: Any, **options: Any) -> None:
        self.headings.extend(filter(None, [(data or {}).get("state", {}).get("_heading")]))


def test_a_page_that_asks_for_the_state_is_not_left_with_an_older_one(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = real(SPEC)[1]
    search = search_swaps(graph, machine("v100-16gb"), "60%", evaluations=0)
    search.wait(progress=False)
    shown, last = LivePlot(figures.search_history(graph, search)), figures.search_history(graph, search)
    last.update_layout(meta={**last.layout.meta, "title": "The last."})
    changes = threading.Thread(target=shown.follow, args=[last])
    taken = shown.get_state

    def interrupted(*args: Any, **options: Any) -> Any:
        state = taken(*args, **options)
        if threading.current_thread() is not changes:  # the search makes a plan as soon as the state has been read
            changes.start()
            changes.join(0.5)
        return state

    monkeypatch.setattr(shown, "get_state", interrupted)
    sent = shown.comm = Sent()
    shown.send_state()  # as where a page asks for it
    changes.join()
    assert "The last." in sent.headings[-1]


def followed(shown: FigureWidget) -> None:
    """Wait until no thread changes a plot any more."""
    assert shown.layout.meta["summary"]
    for thread in threading.enumerate():
        if thread.name == "stowage-watch":
            thread.join(60)
            assert not thread.is_alive()
