"""Plots that follow a search and a run, in a real JupyterLab."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.widgets.browser import lab
from tests.widgets.browser.test_figure_layout import WRONG, picture

WATCH_RUN = """
import planner, widgets
step = planner.zoo.load("gpt:layers=2,hidden=64,sequence=64,heads=2,batch=4")
run = planner.run(step, budget="60%", steps=5)
widgets.watch_run(run)
"""
WATCH_SEARCH = """
search = planner.search_swaps(planner.capture(step), planner.machine("laptop"), "60%", time_limit=1)
widgets.watch(planner.capture(step), search)
"""
WATCH_CANCELLED = """
other = planner.search_swaps(planner.capture(step), planner.machine("laptop"), "50%", time_limit=None)
shown = widgets.watch(planner.capture(step), other)
display(shown)
while not other.history: pass
other.cancel()
"""
#: The words of what a cell shows.
WORDS = """number => [...document.querySelectorAll('.jp-Notebook .jp-Cell')[number]
  .querySelectorAll('.stowage-text .inside > *, .js-plotly-plot text')].map(text => text.textContent)"""
#: Steps whose name is hidden although it fits, with room around it, between those that are named and the axis' end.
LEFT_OUT = """() => { const plot = document.querySelector('.js-plotly-plot');
  const steps = plot._fullData.find(trace => trace.name === 'steps');
  const axis = plot._fullLayout.xaxis, at = steps.base.map(start => axis.l2p(start));
  const seen = new Set([...plot.querySelectorAll('.bartext')].filter(e => e.getBoundingClientRect().width > 1)
    .map(e => e.textContent));
  const taken = [axis._length, ...at.filter((_, k) => seen.has(steps.text[k]))];
  return steps.text.filter((text, k) => !seen.has(text) && taken.every(other => Math.abs(other - at[k]) > 60)); }"""
#: Of each plot and its text, what reaches out of the cell or is narrower than it.
UNFIT = """() => [...document.querySelectorAll('.jp-OutputArea-output:has(.js-plotly-plot)')].flatMap(cell =>
  [cell, ...cell.querySelectorAll('.stowage-text .inside, .js-plotly-plot, .js-plotly-plot .main-svg')]
    .filter(e => Math.abs(e.clientWidth - cell.clientWidth) > 1 || e.scrollWidth > e.clientWidth + 1)
    .map(e => `${e.className.baseVal ?? e.className}: ${e.clientWidth} of ${cell.clientWidth}, ${e.scrollWidth}`))"""


@pytest.fixture(scope="module")
def watched(server: lab.Lab, browser: Browser) -> Iterator[lab.Opened]:
    """A notebook with a run, a search and one that is cancelled, which were followed to their ends."""
    notebook = server.open(browser, "watching.ipynb", [WATCH_RUN, WATCH_SEARCH, WATCH_CANCELLED])
    notebook.load_slowly()
    notebook.run_all()
    notebook.until(f"() => ({WORDS})(0).some(text => text.includes('after 5 steps'))")
    notebook.until(f"() => ({WORDS})(1).some(text => /^Search, (done|proven|at its limit)/.test(text))")
    notebook.until(f"() => ({WORDS})(2).some(text => /^Search, cancelled/.test(text))")
    yield notebook
    assert notebook.ours() == []
    notebook.close()


def test_a_run_and_a_search_are_followed_to_their_ends(watched: lab.Opened, tmp_path: Path) -> None:
    for cell, start in ((0, "MiB"), (0, "step "), (0, "budget"), (1, "lower bound on time")):  # drawn after the words
        watched.until(f"() => ({WORDS})({cell}).some(text => text.startsWith('{start}'))")
    watched.page.screenshot(path=tmp_path / "watched.png")
    assert [error for error in watched.errors if "Error setting state" in error] == []


def test_what_follows_is_as_wide_as_its_cell(watched: lab.Opened) -> None:
    page = watched.page
    widths: list[int] = []
    for width in (1440, 764, 1000):  # narrower and wider again
        page.set_viewport_size({"width": width, "height": 2000})
        watched.until(f"() => !{widths}.includes(document.querySelector('.js-plotly-plot').clientWidth)")
        watched.until(f"() => ({UNFIT})().length === 0")
        for wrong in (WRONG, LEFT_OUT):  # once they are drawn anew
            watched.until(f"() => ({wrong})().length === 0")
        picture(page, f"watched-{width}")
        assert page.locator(".stowage-text").count() == 3
        widths.append(page.evaluate("() => document.querySelector('.js-plotly-plot').clientWidth"))
    assert len(set(widths)) == 3
