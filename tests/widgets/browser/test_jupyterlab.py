"""The whole way in a real JupyterLab: open, run all, move the budget, search, cancel, resume, run, export, close."""

import json
from pathlib import Path

from playwright.sync_api import Browser

from tests.widgets.browser import lab
from tests.widgets.browser.recorded_messages import DEEP, SMALL

BENCH = """
from planner import zoo
import widgets
bench = widgets.Workbench(zoo.load({spec!r}), machine={machine!r}, budget={budget!r})
bench
"""
CLOSED = """
import threading, time
bench.close()
until = time.monotonic() + 240
left = None
while (left is None or left) and time.monotonic() < until:
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith("stowage")]
    time.sleep(0.05)
print("left:", left)
"""
STATE = "(document.querySelector('.sw-memory .plot')?.plot.store ?? {})"


def test_the_tour(server: lab.Lab, browser: Browser, tmp_path: Path) -> None:
    notebook = server.open(browser, "tour.ipynb", [BENCH.format(spec=DEEP, machine="v100-16gb", budget="60%"), "1 + 1"])
    page = notebook.page
    notebook.run_all()
    page.wait_for_selector(".sw[data-state=ready]")
    notebook.until(f"() => {STATE}.budget?.state === 'planned'")
    page.screenshot(path=tmp_path / "opened.png")

    before = page.locator(".sw-amount").inner_text()
    notebook.press(".sw input[type=range]", "Home")  # the least there is a plan for, where a search takes longest
    assert page.locator(".sw-amount").inner_text() != before
    notebook.until(f"() => {STATE}.budget.state === 'planned' && {STATE}.budget.budget_bytes === {STATE}.budget_bytes")
    notebook.until(f"() => {STATE}.plan.budget_bytes === {STATE}.budget_bytes")

    search = page.locator(".sw-do-search")
    search.click()
    notebook.until(f"() => {STATE}.search.state === 'running' && {STATE}.search.evaluations > 0")
    assert search.inner_text() == "Cancel"
    page.screenshot(path=tmp_path / "searching.png")
    search.click()
    notebook.until(f"() => {STATE}.search.state === 'cancelled'")
    found = page.evaluate(f"() => {STATE}.search.evaluations")
    search.click()
    notebook.until(f"() => {STATE}.search.evaluations > {found}")
    notebook.press(".sw-memory .plot", "Escape")
    notebook.until(f"() => {STATE}.search.state !== 'running'")

    page.locator(".sw-do-run").click()
    notebook.until(f"() => ['done', 'failed'].includes({STATE}.run.state)")
    page.screenshot(path=tmp_path / "run.png")
    assert "Identical to eager" in page.locator(".sw-badge").inner_text()

    page.locator(".sw-do-export").click()
    with page.expect_download() as waiting:
        page.locator(".sw-export-file").first.click()
    plan = json.loads(Path(waiting.value.path()).read_text())
    assert plan["budget_bytes"] == page.evaluate(f"() => {STATE}.budget_bytes")
    notebook.until("() => document.querySelector('.sw .news').textContent.startsWith('Saved')")

    # none of them is a shortcut of the notebook
    notebook.press(".sw-memory .plot", "w", "d", "p", "ArrowRight", "ArrowDown", "f", "0")
    assert page.locator(".jp-Notebook .jp-Cell").count() == 2
    assert "Nothing selected" not in page.locator(".sw-selection .line").inner_text()

    assert notebook.add_and_run(CLOSED) == "left: []"
    page.wait_for_selector(".sw", state="detached")
    assert notebook.ours() == []
    notebook.close()


def test_a_kernel_that_is_restarted_under_an_open_widget_is_said_to_be_away(
    server: lab.Lab, browser: Browser, tmp_path: Path
) -> None:
    notebook = server.open(browser, "restart.ipynb", [BENCH.format(spec=SMALL, machine="cpu", budget="45%")])
    page = notebook.page
    notebook.run_all()
    page.wait_for_selector(".sw[data-state=ready]")
    notebook.until(f"() => {STATE}.budget?.state === 'planned'")
    session = next(one for one in server.ask("sessions") if one["path"] == "restart.ipynb")
    server.ask(f"kernels/{session['kernel']['id']}/restart", "POST")
    notebook.wait_for_kernel()
    page.locator(".sw-do-search").click()
    page.wait_for_selector(".sw-banner:visible")
    page.screenshot(path=tmp_path / "restarted.png")
    assert "run this cell again" in page.locator(".sw-banner:visible").inner_text()
    notebook.press(".sw-memory .plot", "ArrowRight")
    assert "Nothing selected" not in page.locator(".sw-selection .line").inner_text()
    notebook.run_all()
    page.wait_for_selector(".sw-banner", state="hidden")
    notebook.until(f"() => {STATE}.budget?.state === 'planned'")
    assert notebook.ours() == []
    notebook.close()


def test_it_is_the_same_in_jupyter_notebook(server: lab.Lab, browser: Browser, tmp_path: Path) -> None:
    cells = [BENCH.format(spec=SMALL, machine="cpu", budget="45%")]
    notebook = server.open(browser, "seven.ipynb", cells, "notebooks")
    page = notebook.page
    notebook.run_all()
    page.wait_for_selector(".sw[data-state=ready]")
    notebook.until(f"() => {STATE}.budget?.state === 'planned'")
    before = page.locator(".sw-amount").inner_text()
    notebook.press(".sw input[type=range]", "Home")
    notebook.until(f"() => {STATE}.plan.budget_bytes === {STATE}.budget_bytes")
    assert page.locator(".sw-amount").inner_text() != before
    page.locator(".sw-do-run").click()
    notebook.until(f"() => ['done', 'failed'].includes({STATE}.run.state)")
    page.screenshot(path=tmp_path / "notebook.png")
    assert "Identical to eager" in page.locator(".sw-badge").inner_text()
    notebook.press(".sw-memory .plot", "w", "d", "p", "ArrowRight", "0")
    notebook.until("() => document.querySelector('.sw-selection .name').textContent")
    assert page.locator(".jp-Notebook .jp-Cell").count() == len(cells)
    assert notebook.add_and_run(CLOSED) == "left: []"
    assert notebook.ours() == []
    notebook.close()


def test_two_views_of_a_step_follow_each_other_and_the_theme(server: lab.Lab, browser: Browser, tmp_path: Path) -> None:
    memory = BENCH.format(spec=SMALL, machine="cpu", budget="45%").replace("Workbench", "MemoryMap")
    notebook = server.open(browser, "theme.ipynb", [memory, "widgets.StreamView(bench)"])
    page = notebook.page
    notebook.load_slowly()
    notebook.run_all()
    notebook.until("() => document.querySelectorAll('.sw[data-state=ready]').length === 2")
    notebook.until(f"() => {STATE}.budget?.state === 'planned'")
    names = page.evaluate("() => [...document.querySelectorAll('.sw [id]')].map(element => element.id)")
    assert len(set(names)) == len(names) >= 2
    feasibility = "() => getComputedStyle(document.querySelector('.sw-streams')).backgroundColor"
    light = page.evaluate(feasibility)
    page.evaluate("() => { jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' }); }")
    page.wait_for_function(f"light => ({feasibility})() !== light", arg=light)
    notebook.press(".sw-memory .plot", "ArrowRight")
    notebook.until("() => [...document.querySelectorAll('.sw-selection .name')].every(name => name.textContent)")
    page.screenshot(path=tmp_path / "dark.png")
    lines = page.locator(".sw-selection .name").all_inner_texts()
    assert lines == [lines[0]] * 2

    notebook.add_and_run("bench")  # the same widget in one more place, which leaves the others as they are
    notebook.until("() => document.querySelectorAll('.sw[data-state=ready]').length === 3")
    assert page.locator(".sw-selection .name").all_inner_texts()[:2] == lines
    assert notebook.ours() == []
    notebook.close()
