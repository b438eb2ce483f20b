"""What is pointed at or selected in one panel stands out in all, in every widget of the same step, without Python."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.widgets.browser.page import Shown
from tests.widgets.browser.recorded_messages import planned, says

Show = Callable[..., Shown]
PLOTS = ("graph", "memory", "streams")


@pytest.fixture
def page(show: Show) -> Shown:
    page = show()
    page.publish(planned().messages)
    return page


def longest_copy() -> tuple[int, float]:
    """The storage whose copy out takes longest, and the share of the step in its middle."""
    plan = planned().columns("plan")
    copy = int(np.argmax(plan["out_stop"] - plan["out_start"]))
    middle = (plan["out_start"][copy] + plan["out_stop"][copy]) / 2
    return int(plan["out_storage"][copy]), float(middle / planned()["plan"]["step_seconds"])


def overlays(page: Shown) -> dict[str, str]:
    return {panel: page.pixels(panel, over=True) for panel in PLOTS}


def test_pointing_at_a_copy_outlines_it_everywhere_and_moves_the_cursor(page: Shown) -> None:
    _, share = longest_copy()
    data, before = [page.pixels(panel) for panel in PLOTS], overlays(page)
    holders = page.text(".sw-holders .note")
    page.move("streams", page.x_of("streams", share), page.lane(1))
    page.picture("pointed")
    assert [panel for panel, drawn in overlays(page).items() if drawn == before[panel]] == []
    assert page.text(".sw-holders h3") == "Who holds memory"
    assert says(page.text(".sw-holders .note"), share * planned()["plan"]["step_seconds"])
    page.leave()
    assert overlays(page) == before
    assert page.text(".sw-holders .note") == holders
    assert page.tip() == {}
    assert [page.pixels(panel) for panel in PLOTS] == data, "pointing redrew the data"
    assert page.page.evaluate("() => wire.requests.length") == 1, "pointing asked Python"


def test_what_a_search_finds_stands_out_in_memory_and_streams(page: Shown) -> None:
    before = [page.pixels(panel) for panel in PLOTS]
    page.find("input[type=search]").fill("attention")
    page.settle()
    found = [page.pixels(panel) for panel in PLOTS]
    assert [panel for panel, one, other in zip(PLOTS, before, found, strict=True) if one == other] == []
    page.find("input[type=search]").fill("no such thing")
    page.settle()
    assert [page.pixels(panel) for panel in PLOTS[1:]] == before[1:]


def test_the_cursor_stands_at_one_time_in_memory_and_streams(page: Shown) -> None:
    page.move("memory", page.x_of("memory", 0.25), 40)
    for panel in ("memory", "streams"):
        ink = page.plot(panel).evaluate(
            """(host, x) => { const canvas = host.querySelectorAll('canvas')[1];
              const line = [0, 1, 2].map(k => Math.floor(x) - 1 + k);
              const column = x => canvas.getContext('2d').getImageData(x, 0, 1, canvas.height).data;
              return Math.max(...line.map(x => column(x).filter((value, k) => k % 4 === 3 && value).length))
                / canvas.height; }""",
            page.x_of(panel, 0.25),
        )
        assert ink > 0.4, panel


def test_a_click_selects_says_exact_numbers_and_fades_the_rest(page: Shown) -> None:
    recorded, (storage, share) = planned(), longest_copy()
    before = [page.pixels(panel) for panel in PLOTS]
    page.click("streams", page.x_of("streams", share), page.lane(1))
    page.picture("selected")
    line = page.selected()
    assert line.startswith(recorded["graph"]["storage_names"][storage])
    assert says(line, recorded.columns("graph")["storage_bytes"][storage])
    assert says(line, int((recorded.columns("plan")["out_storage"] == storage).sum()))
    assert "away" in line
    assert [page.pixels(panel) != old for panel, old in zip(PLOTS, before, strict=True)] == [True, True, True]
    page.find(".sw-selection button:has-text('Clear')").click()
    page.leave()
    assert "Nothing selected" in page.selected()
    assert page.pixels("memory") == before[1]


def test_a_module_that_is_selected_says_what_all_below_it_holds(page: Shown) -> None:
    recorded = planned()
    page.click("graph", 120, 20)  # the first box
    chosen = page.plot("graph").evaluate("host => host.plot.store.focus")
    owned = page.plot("graph").evaluate("host => [...host.plot.store.focus.storages]")
    line = page.selected()
    assert line.startswith(chosen["label"])
    assert says(line, recorded.columns("graph")["storage_bytes"][owned].sum())
    assert says(line, len(owned))


def test_a_group_of_holders_is_selected_and_let_go(page: Shown) -> None:
    first = page.find(".sw-holders li button").first
    first.click()
    page.settle()
    assert first.get_attribute("aria-pressed") == "true"
    assert page.selected().startswith(page.text(".sw-holders li .n span"))
    first.click()
    page.settle()
    assert "Nothing selected" in page.selected()


def two(show: Show, *links: str) -> Shown:
    page = show(widgets=[["memory", "selection"], ["streams", "selection"]], links=links)
    page.publish(planned().messages)
    return page


def lines(page: Shown) -> list[str]:
    return [text.strip() for text in page.find(".sw-selection .name").all_text_contents()]


def test_widgets_of_the_same_step_select_and_point_together(show: Show) -> None:
    page = two(show, "same", "same")
    storage, share = longest_copy()
    before = page.pixels("memory", over=True)
    page.move("streams", page.x_of("streams", share), page.lane(1))
    assert page.pixels("memory", over=True) != before
    page.click("streams", page.x_of("streams", share), page.lane(1))
    assert lines(page) == [planned()["graph"]["storage_names"][storage]] * 2
    page.take_away(1)
    page.plot("memory").focus()
    page.press("Escape")
    assert lines(page) == [""]
    page.click("memory", *page.held(0.5))
    assert lines(page) != [""]


def test_widgets_of_other_steps_keep_to_themselves(show: Show) -> None:
    page = two(show, "one", "other")
    storage, share = longest_copy()
    page.click("streams", page.x_of("streams", share), page.lane(1))
    assert lines(page) == ["", planned()["graph"]["storage_names"][storage]]
