"""The picture of a search against the search itself, finished and as it goes on in a notebook."""

import json
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from planner.machine import machine
from planner.swap import SwapSearch, search_swaps
from tests.widgets.steps import real
from widgets import figures
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
    assert json.loads(figure.to_json())["layout"]["meta"]["summary"].endswith(".")


def test_a_search_that_has_just_begun_is_drawn() -> None:
    search = search_swaps(real(SPEC)[1], machine("v100-16gb"), "60%")
    figure = figures.search_history(real(SPEC)[1], search)
    search.cancel()
    assert figure.layout.meta["summary"]


def test_in_a_notebook_the_cell_returns_and_its_picture_follows_the_search() -> None:
    """The kernel is real. The picture belongs to the cell that began it, whichever cell runs when it changes."""
    cells = [
        "import planner, widgets\n"
        f"graph = planner.capture(planner.zoo.load('{SPEC}'))\n"
        "search = planner.swap.search_swaps(graph, planner.machine('v100-16gb'), '60%', evaluations=40)\n"
        "widgets.watch(graph, search)",
        "import time, threading\n"
        "search.wait()\n"
        "while any(thread.name == 'stowage-watch' for thread in threading.enumerate()): time.sleep(0.05)\n"
        "print(search.progress.evaluations)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    (picture,) = notebook.cells[0].outputs
    layout = picture.data["application/vnd.plotly.v1+json"]["layout"]
    assert "running" not in layout["title"]["text"]
    assert f"{notebook.cells[1].outputs[0].text.strip()} plan" in layout["meta"]["summary"]
