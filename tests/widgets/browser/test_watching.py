"""Plots that follow a search and a run, in a real JupyterLab."""

from pathlib import Path

from playwright.sync_api import Browser

from tests.widgets.browser import lab

WATCH_RUN = """
import planner, widgets
step = planner.zoo.load("gpt:layers=2,hidden=64,sequence=64,heads=2,batch=4")
run = planner.run(step, budget="60%", steps=5)
widgets.watch_run(run)
"""
WATCH_SEARCH = """
search = planner.search_swaps(planner.capture(step), planner.machine("laptop"), "60%", time_limit=3)
widgets.watch(planner.capture(step), search)
"""
WATCH_CANCELLED = """
other = planner.search_swaps(planner.capture(step), planner.machine("laptop"), "50%", time_limit=None)
shown = widgets.watch(planner.capture(step), other)
display(shown)
while not other.history: pass
other.cancel()
"""
#: The words in the plot of a cell.
WORDS = """number => [...document.querySelectorAll('.jp-Notebook .jp-Cell')[number]
  .querySelectorAll('.js-plotly-plot text')].map(text => text.textContent)"""


def test_a_run_and_a_search_are_followed_to_their_ends(server: lab.Lab, browser: Browser, tmp_path: Path) -> None:
    notebook = server.open(browser, "watching.ipynb", [WATCH_RUN, WATCH_SEARCH, WATCH_CANCELLED])
    page = notebook.page
    notebook.load_slowly()
    notebook.run_all()
    notebook.until(f"() => ({WORDS})(0).some(text => text.includes('after 5 steps'))")
    notebook.until(f"() => ({WORDS})(1).some(text => /^Search, (done|proven|paused)/.test(text))")
    notebook.until(f"() => ({WORDS})(2).some(text => /^Search, cancelled/.test(text))")
    run, search = (page.evaluate(f"number => ({WORDS})(number)", number) for number in (0, 1))
    page.screenshot(path=tmp_path / "watched.png")
    assert "MiB" in run
    assert any(text.startswith("step ") for text in run)
    assert any(text.startswith("budget") for text in run)
    assert any(text.startswith("no plan above") for text in search)
    assert [error for error in notebook.errors if "Error setting state" in error] == []
    assert notebook.ours() == []
    notebook.close()
