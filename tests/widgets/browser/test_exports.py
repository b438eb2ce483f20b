"""What can be saved from a page: files that Python writes, and pictures that the page makes itself."""

import base64
import struct
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.widgets.browser.page import Shown
from tests.widgets.browser.recorded_messages import RecordedMessages, planned, trained
from widgets.fallback import page_text
from widgets.messages.state_messages import export_message

Show = Callable[..., Shown]
SVG = "{http://www.w3.org/2000/svg}"
VIEWS = (
    "Everything shown here",
    "Budget and verdict",
    "Graph",
    "Memory",
    "Who holds memory",
    "Streams",
    "Search",
    "Run",
)


def open_menu(show: Show, recorded: RecordedMessages) -> Shown:
    page = show()
    page.publish(recorded.messages)
    page.find(".sw-do-export").click()
    page.settle()
    return page


def saved(page: Shown, label: str) -> Path:
    """What a click on a button lets the browser save."""
    if not page.find(".sw-export").is_visible():
        page.find(".sw-do-export").click()
    with page.page.expect_download() as waiting:
        page.find(f".sw-export [aria-label='{label}']").click()
    path = page.at / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def test_files_are_asked_of_python_by_format(show: Show) -> None:
    page = open_menu(show, trained())
    page.picture("export-menu")
    asked = []
    for file in range(page.find(".sw-export-file").count()):
        if not page.find(".sw-export").is_visible():
            page.find(".sw-do-export").click()
        page.find(".sw-export-file").nth(file).click()
        asked.append(page.wait_for_request("export")["format"])
    assert asked == ["plan", "trace", "run_trace", "csv", "html"]


def test_what_python_sends_is_saved_under_its_name_to_the_byte(show: Show) -> None:
    page = open_menu(show, planned())
    data = bytes(range(256)) * 3
    with page.page.expect_download() as waiting:
        page.publish([export_message("step.plan.json", "application/json", data)])
    assert waiting.value.suggested_filename == "step.plan.json"
    assert Path(waiting.value.path()).read_bytes() == data


def test_what_there_is_not_yet_says_why(show: Show) -> None:
    page = open_menu(show, planned(budget=1000))
    reasons = [file.get_attribute("aria-description") for file in page.find(".sw-export-file").all()]
    assert reasons[:4] == ["There is no plan at this budget"] * 2 + ["Nothing has run yet"] + [reasons[0]]
    page.find(".sw-export-file").first.click(force=True)
    assert page.requests("export") == []


def test_the_menu_works_by_keys_and_escape_closes_nothing_but_it(show: Show) -> None:
    page = show()
    page.publish(planned().messages)
    page.plot("memory").focus()
    page.press("ArrowRight")
    page.find(".sw-do-export").focus()
    page.press("Enter", "Tab", "ArrowDown", "ArrowUp")
    assert page.find(".sw-export-file").first.evaluate("button => button === document.activeElement")
    page.press("Escape")
    assert not page.find(".sw-export").is_visible()
    assert page.find(".sw-do-export").evaluate("button => button === document.activeElement")
    assert "Nothing selected" not in page.selected()


def test_the_menu_closes_when_the_page_scrolls_and_not_when_it_scrolls_itself(show: Show) -> None:
    page = show(height=420)
    page.publish(planned().messages)
    page.find(".sw-do-export").click()
    menu = page.find(".sw-export")
    box = menu.bounding_box()
    assert box is not None
    assert 0 <= box["y"] < box["y"] + box["height"] <= 420
    menu.evaluate("menu => new Promise(done => { menu.onscroll = done; menu.scrollTop = 1000; })")
    assert menu.evaluate("menu => menu.scrollTop") > 0
    assert menu.is_visible()
    page.page.evaluate("() => new Promise(done => { document.onscroll = done; scrollTo(0, 30); })")
    page.settle()
    assert not menu.is_visible()


def test_there_is_a_picture_of_every_view_in_both_formats(show: Show) -> None:
    page = open_menu(show, trained())
    labels = [button.get_attribute("aria-label") for button in page.find(".sw-export-row button").all()]
    assert labels == [f"{view}, {format}" for view in VIEWS for format in ("PNG", "SVG")]


@pytest.mark.parametrize("view", VIEWS)
def test_a_drawing_parses_and_its_text_is_text(show: Show, view: str) -> None:
    recorded = trained()
    page = open_menu(show, recorded)
    path = saved(page, f"{view}, SVG")
    assert path.suffix == ".svg"
    root = ElementTree.parse(path).getroot()
    assert root.tag == f"{SVG}svg"
    words = " ".join("".join(text.itertext()) for text in root.iter(f"{SVG}text"))
    expected = {
        "Everything shown here": recorded["graph"]["name"],
        "Budget and verdict": recorded["graph"]["name"],
        "Graph": "Modules",
        "Memory": "budget",
        "Who holds memory": "MiB",
        "Streams": "compute",
        "Search": "bound",
        "Run": "step 2",
    }[view]
    assert expected.lower() in words.lower()
    assert root.find(f"{SVG}title") is not None
    assert not list(root.iter(f"{SVG}image"))
    numbers = [value for element in root.iter() for value in element.attrib.values()]
    assert not [value for value in numbers if "NaN" in value or "undefined" in value]


#: Mean difference of two pictures of one size, of 255, over channels and squares of which hatches are narrower.
DIFFERENCE = """async ([drawing, pixels]) => {
  const square = 8;
  const load = async (data, mime) => {
    const image = new Image();
    image.src = `data:${mime};base64,${data}`;
    await image.decode();
    return image;
  };
  const images = [await load(drawing, 'image/svg+xml'), await load(pixels, 'image/png')];
  const { naturalWidth: width, naturalHeight: height } = images[1];
  const across = Math.ceil(width / square);
  const [a, b] = images.map(image => {
    const g = Object.assign(document.createElement('canvas'), { width, height }).getContext('2d');
    g.drawImage(image, 0, 0, width, height);
    const sums = new Float64Array(across * Math.ceil(height / square) * 4);
    g.getImageData(0, 0, width, height).data.forEach((value, k) => {
      const [x, y] = [Math.floor(k / 4) % width, Math.floor(k / 4 / width)];
      sums[(Math.floor(y / square) * across + Math.floor(x / square)) * 4 + k % 4] += value;
    });
    return sums;
  });
  return a.reduce((sum, value, k) => sum + Math.abs(value - b[k]), 0) / (width * height * 4);
}"""


@pytest.mark.parametrize("view", ["Everything shown here", "Graph", "Memory", "Run"])
def test_a_drawing_looks_like_the_picture(show: Show, view: str) -> None:
    page = open_menu(show, trained())
    files = [base64.b64encode(saved(page, f"{view}, {format}").read_bytes()).decode() for format in ("SVG", "PNG")]
    assert page.page.evaluate(DIFFERENCE, files) < 4  # letters have other edges; another view differs by 40


@pytest.mark.parametrize("view", ["Everything shown here", "Memory", "Run"])
def test_a_picture_has_twice_the_pixels_of_the_page(show: Show, view: str) -> None:
    page = open_menu(show, trained())
    data = saved(page, f"{view}, PNG").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    selector = {"Everything shown here": ".sw-grid", "Memory": ".sw-memory", "Run": ".sw-run-cols"}[view]
    box = page.find(selector).bounding_box()
    assert box is not None
    assert (width, height) == (round(2 * box["width"]), round(2 * box["height"]))
    assert len(data) > 5000


def test_a_saved_page_opens_with_what_was_shown_when_it_was_saved(show: Show) -> None:
    page = show()
    page.publish(planned().messages)
    page.click("memory", *page.held(0.3))
    page.plot("memory").focus()
    page.press("w", "w", "+", "d")
    page.page.get_by_role("tab", name="Plans").click()
    page.find(".sw-graph .seg button").nth(1).click()
    state = """() => {
      const { store, axis, addresses } = document.querySelector('.sw-memory .plot').plot;
      const { selection, tab, graphMode } = store;
      return { selection, tab, graphMode, from: axis.from, to: axis.to, low: addresses.low, high: addresses.high };
    }"""
    before = page.page.evaluate(state)
    assert before["selection"]["type"] == "storage"
    assert 0 < before["from"] < before["to"]
    page.find(".sw-do-export").click()
    page.find(".sw-export-file").last.click()
    shown = page.wait_for_request("export")["shown"]
    path = page.at / "saved.html"
    path.write_text(page_text(planned().messages, shown=shown), encoding="utf-8")
    page.page.goto(path.as_uri())
    page.page.wait_for_function("document.querySelector('.sw-memory .plot')?.plot.store.offline === 'static'")
    page.page.wait_for_function("document.querySelector('.sw-memory .plot').plot.store.selection")
    after = page.page.evaluate(state)
    assert {name: before[name] for name in ("selection", "tab", "graphMode")} == {
        name: after[name] for name in ("selection", "tab", "graphMode")
    }
    assert [after[name] for name in ("from", "to", "low", "high")] == pytest.approx(
        [before[name] for name in ("from", "to", "low", "high")], rel=1e-6
    )
