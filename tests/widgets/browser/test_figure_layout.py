"""Figures in cells of any width: text wraps, no label is cut off and none covers another."""

import pytest
from playwright.sync_api import Browser, Page

from tests.effort import EFFORT
from tests.widgets.browser import lab
from tests.widgets.browser.page import PICTURES
from tests.widgets.browser.test_figure_themes import every_plot
from tests.widgets.plots import Plots

MADE = """
import widgets
from tests.widgets.steps import real, real_plan
from tests.widgets.test_figures import SPEC, run_of
graph, plan = real(SPEC)[1], real_plan(SPEC, "60%")
"""
CELLS = [
    f"{MADE}widgets.memory_by_kind(graph, plan)",
    "widgets.streams(graph, plan)",
    "widgets.schedule_and_pool()",
    "widgets.predicted_and_measured(plan, run_of(plan))",
    "blocks = 'gpt:layers=6,hidden=64,sequence=64,heads=2,batch=2'\nwidgets.address_map(real(blocks)[1], "
    "real_plan(blocks, '60%'))",
]
WIDTHS = (1440, 1000, 764, 700) if EFFORT > 1 else (1440, 700)
#: Of each plot, texts that are cut off at its edge, and pairs that cover each other; ticks, titles and tags.
WRONG = """() => [...document.querySelectorAll('.js-plotly-plot')].flatMap(plot => {
  const all = plot.getBoundingClientRect();
  const texts = [...plot.querySelectorAll('.xtick text, .ytick text, .gtitle, .xtitle, .annotation-text')]
    .filter(e => e.textContent.trim() && getComputedStyle(e).opacity > 0)
    .map(e => ({ text: e.textContent, rect: e.getBoundingClientRect() }));
  const cut = texts.filter(({ rect }) => rect.left < all.left - 1 || rect.right > all.right + 1
    || rect.top < all.top - 1 || rect.bottom > all.bottom + 1).map(each => `cut off: ${each.text}`);
  const over = texts.flatMap((a, k) => texts.slice(k + 1).filter(b => a.rect.left < b.rect.right - 1
    && b.rect.left < a.rect.right - 1 && a.rect.top < b.rect.bottom - 2 && b.rect.top < a.rect.bottom - 2)
    .map(b => `${a.text} | ${b.text}`));
  return [...cut, ...over];
})"""
#: Names inside boxes that are shown, and how many pairs of them cover each other.
NAMES = """() => {
  const names = [...document.querySelectorAll('.js-plotly-plot :is(.textpoint text, .bartext)')]
    .map(e => ({ text: e.textContent, rect: e.getBoundingClientRect() })).filter(each => each.rect.width > 1);
  return [names.length, names.flatMap(({ text, rect }, k) => names.slice(k + 1).filter(b => rect.left < b.rect.right - 1
    && b.rect.left < rect.right - 1 && rect.top < b.rect.bottom - 2 && b.rect.top < rect.bottom - 2)
    .map(b => `${text} | ${b.text}`))]; }"""
#: How many tool bars reach into a title.
BARS = """() => [...document.querySelectorAll('.js-plotly-plot')].filter(plot => {
  const title = plot.querySelector('.gtitle')?.getBoundingClientRect();
  const bar = plot.querySelector('.modebar')?.getBoundingClientRect();
  return title && bar && bar.left < title.right && bar.top < title.bottom;
}).map(plot => plot.textContent.slice(0, 80))"""


def picture(page: Page, name: str) -> None:
    if PICTURES:
        page.screenshot(path=f"{PICTURES}/{name}.png", full_page=True)


def test_figures_in_narrow_and_wide_cells_of_jupyterlab(server: lab.Lab, browser: Browser) -> None:
    notebook = server.open(browser, "widths.ipynb", CELLS)
    page = notebook.page
    notebook.run_all()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 3200})
        notebook.until(
            """() => { const plots = [...document.querySelectorAll('.js-plotly-plot')];
              return plots.length === 5 && plots.every(plot => plot.querySelector('.main-svg')
                && plot.getBoundingClientRect().right < innerWidth
                && Math.abs(plot.clientWidth - plot.querySelector('.main-svg').clientWidth) < 1); }"""
        )
        notebook.until(f"() => ({WRONG})().length === 0")  # once they are drawn anew
        notebook.until(f"() => {{ const [shown, covered] = ({NAMES})(); return shown > 5 && !covered.length; }}")
        picture(page, f"widths-{width}")
        notebook.until("() => document.querySelectorAll('.stowage-text').length === 5")
        texts = page.locator(".stowage-text").evaluate_all("all => all.map(e => [e.scrollWidth, e.clientWidth])")
        assert len(texts) == 5
        assert all(needed <= given for needed, given in texts)
    assert notebook.ours() == []
    notebook.close()


@pytest.mark.parametrize("width", [1000, 570])
def test_a_plot_alone_has_room_for_its_own_text(plots: Plots, width: int) -> None:
    page = plots.draw(every_plot().values(), width, 900)
    picture(page, f"alone-{width}")
    assert page.evaluate(WRONG) == []
    assert page.evaluate(BARS) == []
