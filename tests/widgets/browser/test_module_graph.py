"""The module graph in a page: as wide as there is room, no part over another, as dark as the page."""

import pytest
from playwright.sync_api import Browser, Page

from tests.widgets.browser.page import PICTURES
from tests.widgets.steps import real, real_plan
from widgets import figures
from widgets.figures.theme import DARK, LIGHT

SPECS = ["gpt:optimizer=adam", "wresnet:depth=50,batch=2,image=32"]
#: Pairs of texts, bars and arrows of which one covers a part of the other, and what goes beyond the drawing.
OVER = """() => {
  const root = document.querySelector('.stowage-modules'), all = root.getBoundingClientRect();
  const words = [...root.querySelectorAll('.name, .moves, .size, .bar, .down')].flatMap(element => {
    const range = document.createRange(), box = element.getBoundingClientRect();
    range.selectNodeContents(element);
    const inner = element.matches('.down, .bar') ? box : range.getBoundingClientRect();
    const rect = { left: Math.max(inner.left, box.left), right: Math.min(inner.right, box.right),
      top: Math.max(inner.top, box.top), bottom: Math.min(inner.bottom, box.bottom) };
    return rect.right > rect.left && rect.bottom > rect.top ? [{ ...rect, text: element.textContent, element }] : [];
  });
  const pairs = words.flatMap((a, k) => words.slice(k + 1).filter(b => a.left < b.right - 0.5 && b.left < a.right - 0.5
    && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5).map(b => `${a.text || 'mark'} | ${b.text || 'mark'}`));
  const beyond = [...root.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > all.right + 0.5);
  return [...pairs, ...beyond.map(e => `beyond: ${e.outerHTML.slice(0, 90)}`)];
}"""


def shown(browser: Browser, html: str, width: int, body: str = "<body>") -> Page:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.set_content(f"<!doctype html>{body}{html}")
    return page


@pytest.mark.parametrize("width", [1008, 568, 400])
@pytest.mark.parametrize("spec", SPECS)
def test_nothing_covers_anything_at_any_width(browser: Browser, spec: str, width: int) -> None:
    page = shown(browser, figures.module_graph(real(spec)[1], real_plan(spec, "60%")).text, width)
    if PICTURES:
        page.screenshot(path=f"{PICTURES}/modules-{spec.partition(':')[0]}-{width}.png", full_page=True)
    assert page.evaluate(OVER) == []
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    rows = page.locator(".stowage-modules .box").evaluate_all("all => all.map(e => e.getBoundingClientRect().width)")
    assert max(rows) > 0.75 * width, "rows are as wide as the page"
    amounts = page.locator(".stowage-modules .size").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect().right)"
    )
    assert max(amounts) - min(amounts) < 1, "amounts are below each other"
    page.close()


def test_name_and_size_have_one_baseline(browser: Browser) -> None:
    page = shown(browser, figures.module_graph(real(SPECS[0])[1]).text, 800)
    apart = page.locator(".stowage-modules .box").evaluate_all(
        """all => all.map(box => box.querySelector('.name').getBoundingClientRect().bottom
          - box.querySelector('.size').getBoundingClientRect().bottom)"""
    )
    assert len(apart) > 10
    assert set(apart) == {0}
    page.close()


@pytest.mark.parametrize(("theme", "light"), [("auto", False), ("light", True), ("dark", False)])
def test_it_is_as_dark_as_the_page_unless_one_is_chosen(browser: Browser, theme: str, light: bool) -> None:
    drawing = figures.module_graph(real(SPECS[0])[1], theme=theme).text  # type: ignore[arg-type]
    page = shown(browser, drawing, 800, '<body data-jp-theme-light="false">')
    feasibility = "() => getComputedStyle(document.querySelector('.stowage-modules')).backgroundColor"
    channel = int((LIGHT if light else DARK).paper[1:3], 16)
    assert page.evaluate(feasibility) == f"rgb({channel}, {channel}, {channel})"
    if theme == "auto":
        page.evaluate("() => { document.body.dataset.jpThemeLight = 'true'; }")
        assert min(map(int, page.evaluate(feasibility)[4:-1].split(","))) > 250
    page.close()
