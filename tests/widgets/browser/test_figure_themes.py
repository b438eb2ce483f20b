"""Figures are as dark as the page they are on, and change with it; in a real JupyterLab, saved, and elsewhere."""

import json
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from plotly.graph_objects import Figure

from planner.profile import machine
from planner.swap import search_swaps
from tests.widgets.browser import lab
from tests.widgets.browser.page import PICTURES
from tests.widgets.plots import Plots
from tests.widgets.steps import by_hand, plan_by_hand, real, real_plan
from tests.widgets.test_figures import SPEC, run_of
from widgets import figures
from widgets.figures.notebook_style import page_style
from widgets.figures.theme import DARK, DARK_OF, LIGHT

MADE = """
from tests.widgets.plots import Plots
from tests.widgets.steps import by_hand, plan_by_hand
import widgets
graph, plan = by_hand(), plan_by_hand(by_hand())
"""
FIGURES = [
    f"{MADE}\nwidgets.streams(graph, plan)",
    "widgets.streams(graph, plan, theme='light')",
    "import planner\nrun = planner.run(planner.zoo.load('mlp'), budget='100%', steps=1)\nwidgets.watch_run(run)",
]
#: Backgrounds of all plots of a page.
GROUNDS = """() => [...document.querySelectorAll('.js-plotly-plot .main-svg:first-child')]
  .map(svg => getComputedStyle(svg).backgroundColor)"""
#: Elements of plots that are still shown in one of these colours, and how many elements there are.
STILL = """marks => { const all = [...document.querySelectorAll('.js-plotly-plot svg *')];
  const shown = e => [getComputedStyle(e).fill, getComputedStyle(e).stroke];
  return [all.filter(e => shown(e).some(c => marks.includes(c))).map(e => e.outerHTML.slice(0, 200)), all.length]; }"""

#: How far below its text each plot begins.
SEAMS = """() => { const texts = [...document.querySelectorAll('.stowage-text')];
  return [...document.querySelectorAll('.js-plotly-plot')].map((plot, k) =>
    Math.abs(plot.getBoundingClientRect().top - texts[k].getBoundingClientRect().bottom)); }"""


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))})"


def is_light(colour: str) -> bool:
    """White, or what cannot be told from it."""
    return all(int(channel) > 250 for channel in colour[4:-1].split(","))


def change_theme(notebook: lab.Opened, name: str) -> None:
    notebook.page.evaluate(
        "theme => { jupyterapp.commands.execute('apputils:change-theme', { theme }); }", f"JupyterLab {name}"
    )
    notebook.until(f"() => document.body.dataset.jpThemeLight === '{str(name == 'Light').lower()}'")


def picture(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=Path(PICTURES) / f"{name}.png")


def test_figures_change_with_the_theme_of_jupyterlab(server: lab.Lab, browser: Browser) -> None:
    notebook = server.open(browser, "figures.ipynb", FIGURES)
    page = notebook.page
    notebook.run_all()
    notebook.until("() => /after 1 step/.test(document.querySelectorAll('.stowage-text')[2]?.textContent)")
    change_theme(notebook, "Dark")
    notebook.until(f"() => ({GROUNDS})().join(' ') === '{' '.join(map(rgb, [DARK.paper, LIGHT.paper, DARK.paper]))}'")
    notebook.until(f"() => ({STILL})({json.dumps([rgb(mark) for mark in DARK_OF])})[0].length === 0")
    notebook.until(f"() => Math.max(...({SEAMS})()) < 1")
    picture(page, "lab-dark")
    change_theme(notebook, "Light")
    notebook.until(f"() => ({GROUNDS})().length === 3")
    assert all(map(is_light, page.evaluate(GROUNDS)))
    notebook.until("() => /^Memory of a run, done/.test(document.querySelectorAll('.stowage-text')[2].textContent)")
    titles = page.locator(".stowage-text .title").all_inner_texts()
    assert titles[:2] == ["Streams, predicted by hand"] * 2
    assert page.locator(".stowage-text").first.bounding_box()["height"] > 60  # type: ignore[index]
    assert page.locator(".js-plotly-plot .gtitle").count() == 0
    picture(page, "lab-light")
    assert notebook.ours() == []
    notebook.command("docmanager:save")
    notebook.until("() => !jupyterapp.shell.currentWidget.context.model.dirty")
    stored = (server.at / "figures.ipynb").read_text()
    assert len(json.dumps(json.loads(stored)["cells"][0]["outputs"])) < 200_000, (
        "a picture that JupyterLab adds is most of it"
    )
    notebook.close()


def test_a_saved_notebook_that_is_not_trusted_shows_light_figures(server: lab.Lab, browser: Browser) -> None:
    figure = figures.memory_by_kind(by_hand(), plan_by_hand(by_hand()))
    data: list[dict[str, object]] = [
        {"text/html": f"<style>{page_style()}</style>", "text/plain": ""},
        {"application/vnd.plotly.v1+json": json.loads(figure.to_json())},
    ]
    outputs = [{"output_type": "display_data", "metadata": {}, "data": each} for each in data]
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": "", "execution_count": 1, "outputs": outputs}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    saved = {"cells": [cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (server.at / "untrusted.ipynb").write_text(json.dumps(saved))
    notebook = server.look_at(browser, "untrusted.ipynb", fresh=True)  # styles of notebooks that were trusted stay
    notebook.until("() => document.querySelectorAll('.js-plotly-plot .main-svg .xtick').length > 5")
    change_theme(notebook, "Dark")
    assert all(map(is_light, notebook.page.evaluate(GROUNDS)))
    assert "Error displaying" not in notebook.find(".jp-Notebook").inner_text()
    change_theme(notebook, "Light")
    notebook.close()


@cache
def every_plot() -> dict[str, Figure]:
    graph, plan = real(SPEC)[1], real_plan(SPEC, "60%")
    search = search_swaps(graph, machine("laptop"), "60%", time_limit=0.2)
    search.wait(240)
    return {
        "memory": figures.memory_by_kind(graph, plan),
        "address": figures.address_map(graph, plan),
        "streams": figures.streams(graph, plan),
        "stalls": figures.streams(by_hand(), plan_by_hand(by_hand())),
        "run": figures.predicted_and_measured(plan, run_of(plan)),
        "search": figures.search_history(graph, search),
        "pool": figures.schedule_and_pool(),
    }


@pytest.mark.parametrize("around", ["JupyterLab", "Visual Studio Code", "Colab"])
def test_no_colour_of_a_light_figure_is_left_on_a_dark_page(plots: Plots, around: str) -> None:
    body = {"JupyterLab": {"data-jp-theme-light": "false"}, "Visual Studio Code": {"class": "vscode-dark"}}
    page = plots.draw(
        every_plot().values(), 800, 900, document={"theme": "dark"} if around == "Colab" else {},
        body=body.get(around), before=f"<style>{page_style()}</style>",
    )  # fmt: skip
    left, all_of_them = page.evaluate(STILL, [rgb(mark) for mark in DARK_OF])
    assert left == []
    assert all_of_them > 500
    assert set(page.evaluate(GROUNDS)) == {rgb(DARK.paper)}


def test_a_figure_that_follows_its_page_is_a_figure_like_any_other(tmp_path: Path) -> None:
    figure = figures.streams(by_hand(), plan_by_hand(by_hand()))
    figure.write_html(tmp_path / "figure.html", include_plotlyjs=False)
    assert "Streams, predicted" in (tmp_path / "figure.html").read_text()
    assert figure.to_dict()["layout"]["meta"]["summary"]
