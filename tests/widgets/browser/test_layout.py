"""It fits where it is shown: a wide screen, a laptop's, half a screen."""

from collections.abc import Callable

import pytest

from tests.widgets.browser.page import Shown
from tests.widgets.browser.recorded_messages import planned, trained

Show = Callable[..., Shown]

NOTHING_SCROLLS = "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"
CUT = """() => [...document.querySelectorAll('.sw button, .sw h2, .sw h3, .sw select, .sw [role=tab]')]
  .filter(element => element.checkVisibility() && !element.closest('[popover]'))
  .map(element => [element.textContent || element.className, element.getBoundingClientRect()])
  .filter(([, box]) => box.width && (box.left < 0 || box.right > document.documentElement.clientWidth + 0.5))
  .map(([name]) => name)"""


@pytest.mark.parametrize("width", [700, 860, 1000, 1240, 1800])
def test_nothing_scrolls_sideways_and_nothing_is_cut_off(show: Show, width: int) -> None:
    page = show(width=width)
    page.publish(trained().messages)
    page.picture(f"width-{width}")
    for tab in ("Run", "Search"):
        page.find(f"[role=tab]:text-is('{tab}')").click()
        page.settle()
        assert page.page.evaluate(NOTHING_SCROLLS)
        assert page.page.evaluate(CUT) == []
        empty = [
            host.get_attribute("aria-label")
            for host in page.find(".plot:not([aria-hidden])").all()
            if host.is_visible() and min((host.bounding_box() or {}).get(side, 0) for side in ("width", "height")) < 60
        ]
        assert empty == []


def test_in_a_narrow_page_memory_and_streams_come_first_in_one_column(show: Show) -> None:
    page = show(width=700)
    page.publish(planned().messages)
    boxes = {name: page.find(f".sw-{name}").bounding_box() for name in (
        "header", "memory", "streams", "selection", "graph", "holders", "bottom",
    )}  # fmt: skip
    tops = {name: box["y"] for name, box in boxes.items() if box is not None}
    assert sorted(tops, key=lambda name: tops[name]) == list(boxes)
    assert len({round(box["x"]) for box in boxes.values() if box is not None}) == 1


@pytest.mark.parametrize(("width", "height", "taken"), [(1030, 768, 120), (1200, 800, 120), (1440, 900, 120)])
def test_on_a_laptop_the_tabs_are_within_reach(show: Show, width: int, height: int, taken: int) -> None:
    """The notebook's own bars take some of the window."""
    page = show(width=width, height=height)
    page.publish(trained().messages)
    page.picture(f"laptop-{width}")
    top, bottom = page.find(".sw").bounding_box(), page.find("[role=tablist]").bounding_box()
    assert top is not None
    assert bottom is not None
    assert bottom["y"] + bottom["height"] - top["y"] <= height - taken
    assert page.page.evaluate(NOTHING_SCROLLS)


def test_no_height_changes_when_one_points_selects_searches_or_moves_the_budget(show: Show) -> None:
    page = show()
    page.publish(trained().messages)
    heights = """() => [...document.querySelectorAll('section')].flatMap(e => [e.offsetTop, e.offsetHeight])
      .concat(document.documentElement.scrollHeight)"""
    before = page.page.evaluate(heights)
    page.move("memory", *page.held(0.3))
    assert page.page.evaluate(heights) == before
    page.click("memory", *page.held(0.3))
    assert page.page.evaluate(heights) == before
    page.find("input[type=search]").fill("layers")
    page.settle()
    assert page.page.evaluate(heights) == before
    page.find("input[type=range]").focus()
    page.press("Home")
    assert page.page.evaluate(heights) == before
    page.press("End")
    assert page.page.evaluate(heights) == before


def test_plots_follow_the_width_of_the_page(show: Show) -> None:
    page = show(width=1240)
    page.publish(planned().messages)
    page.page.set_viewport_size({"width": 900, "height": 900})
    page.page.wait_for_function(
        """() => [...document.querySelectorAll('.plot')].filter(host => host.offsetParent).every(host => Math.abs(
          host.querySelector('canvas').width / devicePixelRatio - host.getBoundingClientRect().width) <= 1)"""
    )
    page.settle()
    assert page.inked("memory")
    widths = {round((page.plot(panel).bounding_box() or {})["width"]) for panel in ("memory", "streams")}
    assert len(widths) == 1


@pytest.mark.parametrize("scale", [1.5, 2.0])
def test_canvases_have_the_pixels_of_the_screen(show: Show, scale: float) -> None:
    page = show(scale=scale)
    page.publish(planned().messages)
    box = page.plot("memory").bounding_box()
    assert box is not None
    assert page.plot("memory").locator("canvas").first.evaluate("canvas => canvas.width") == round(box["width"] * scale)


#: What is written in the memory map where the peak is at a share of the step: text, left, right, top, bottom of each.
WRITTEN = """async ([host, share]) => {
  const { plot } = host;
  const { plan } = plot.store;
  plan.peak = { ...plan.peak, seconds: plan.step_seconds * share };
  const found = [];
  const g = plot.data.getContext('2d');
  g.fillText = function (text, x, y) {
    const left = this.textAlign === 'right' ? x - this.measureText(text).width : x;
    found.push([text, left - 4, left + this.measureText(text).width + 4, y - 8, y + 8]);
    CanvasRenderingContext2D.prototype.fillText.call(this, text, x, y);
  };
  plot.draw();
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  delete g.fillText;
  return [found, plot.axis.x(plan.peak.seconds)];
}"""


@pytest.mark.parametrize("view", ["Address", "By kind"])
@pytest.mark.parametrize("width", [1240, 700, 420])
def test_the_peak_its_words_and_the_budget_never_lie_on_each_other(show: Show, width: int, view: str) -> None:
    page = show(["memory"], width=width)
    page.publish(planned().messages)
    page.find(f".sw-memory button:text-is('{view}')").click()
    worded = 0
    for share in (0, 0.02, 0.15, 0.4, 0.6, 0.75, 0.85, 0.93, 0.98, 1):
        written, x = page.plot("memory").evaluate(f"(host, share) => ({WRITTEN})([host, share])", share)
        tag = next(entry for entry in written if entry[0].startswith("budget"))
        assert view == "By kind" or x + 4 <= tag[1] or x - 4 >= tag[2]
        for words in (entry for entry in written if entry[0].startswith("most in use")):
            worded += 1
            assert words[2] <= tag[1] or words[1] >= tag[2] or words[4] <= tag[3] or words[3] >= tag[4]
            assert min(abs(words[1] - x), abs(words[2] - x)) < 8, "the words stand at the mark"
    assert worded > 6


#: What a legend explains and how much of each entry can be seen: all of it is within the panel and over its plot.
EXPLAINED = """panel => [...panel.querySelectorAll('.legend span')].map(entry => {
  const [box, all] = [entry.getBoundingClientRect(), panel.getBoundingClientRect()];
  const plot = panel.querySelector('.plot').getBoundingClientRect();
  const seen = entry.checkVisibility() && box.left >= all.left && box.right <= all.right + 0.5
    && box.top >= all.top && box.bottom <= plot.top + 0.5;
  const others = [...panel.querySelectorAll('.sw-title > :not(.legend)')].map(other => other.getBoundingClientRect());
  const under = others.some(other => other.width && other.left < box.right && other.right > box.left
    && other.top < box.bottom && other.bottom > box.top);
  return [entry.textContent, seen && !under];
})"""


@pytest.mark.parametrize("width", [420, 700, 861, 940, 1109, 1240, 1800])
def test_every_colour_is_explained_at_every_width(show: Show, width: int) -> None:
    page = show(width=width)
    recorded = planned()
    page.publish(recorded.having("budget", budget_bytes=recorded["budget"]["budget_bytes"] + 2**20).messages)
    kinds = {int(kind) for kind in recorded.columns("graph")["storage_kind"]}
    page.picture(f"explained-{width}")
    memory = page.find("section.sw-memory").evaluate(EXPLAINED)
    assert len(memory) == len(kinds) == 6
    assert all(seen for _, seen in memory), memory
    streams = page.find("section.sw-streams").evaluate(EXPLAINED)
    assert [name for name, _ in streams] == ["forward", "backward", "optimizer", "stall"]
    assert all(seen for _, seen in streams), streams
    field = page.find(".sw-graph input[type=search]")
    assert field.evaluate("""field => {
      const [g, style] = [document.createElement('canvas').getContext('2d'), getComputedStyle(field)];
      g.font = style.font;
      return g.measureText(field.placeholder).width + 2 * parseFloat(style.paddingLeft) <= field.clientWidth;
    }""")
