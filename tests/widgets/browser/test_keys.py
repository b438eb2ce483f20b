"""Everything works by keys, and letters reach neither a field's neighbour nor the notebook."""

from collections.abc import Callable

import pytest

from tests.widgets.browser.page import Shown
from tests.widgets.browser.recorded_messages import planned, trained

Show = Callable[..., Shown]


@pytest.fixture
def page(show: Show) -> Shown:
    page = show()
    page.publish(planned().messages)
    return page


def view(page: Shown) -> tuple[float, float]:
    """Which part of the step is in view, as shares."""
    low, high = page.plot("memory").evaluate("({ plot: { axis } }) => [axis.from / axis.end, axis.to / axis.end]")
    return low, high


def selection(page: Shown) -> dict[str, object] | None:
    found: dict[str, object] | None = page.plot("memory").evaluate("host => host.plot.store.selection")
    return found


@pytest.mark.parametrize("panel", ["memory", "streams"])
def test_w_and_s_zoom_a_and_d_pan_and_0_shows_the_whole_step(page: Shown, panel: str) -> None:
    page.plot(panel).focus()
    page.press("w", "w")
    low, high = view(page)
    assert 0 < low < high < 1
    assert high - low == pytest.approx(0.75**2)
    page.press("d")
    assert view(page) > (low, high)
    assert view(page)[1] - view(page)[0] == pytest.approx(high - low)
    page.press("a")
    assert view(page) == pytest.approx((low, high))
    page.press("Shift+d")
    far = view(page)[0] - low
    page.press("Shift+a", "s", "s")
    assert far > 0.12 * (high - low)
    page.press("w", "0")
    assert view(page) == pytest.approx((0, 1))


def test_p_goes_to_the_peak_and_f_shows_all_of_what_is_selected(page: Shown) -> None:
    recorded = planned()
    times, held = recorded.curve()
    peak = float(times[held.sum(axis=1).argmax()]) / recorded["plan"]["step_seconds"]
    page.plot("memory").focus()
    page.press("p")
    low, high = view(page)
    assert low <= peak <= high
    assert high - low == pytest.approx(1 / 3, rel=1e-3)
    assert (selection(page) or {})["type"] == "op"
    page.press("ArrowUp", "f")
    low, high = view(page)
    chosen = (selection(page) or {})["id"]
    plan = recorded.columns("plan")
    stays = plan["residency_storage"] == chosen
    step = recorded["plan"]["step_seconds"]
    assert low <= plan["residency_start"][stays].min() / step + 1e-6
    assert high >= plan["residency_stop"][stays].max() / step - 1e-6


def test_arrows_go_from_op_to_op_in_the_order_of_the_plan_and_through_its_tensors_by_size(page: Shown) -> None:
    recorded = planned()
    order, graph = recorded.columns("plan")["order"], recorded.columns("graph")
    page.plot("streams").focus()
    page.press("ArrowRight")
    assert selection(page) == {"type": "op", "id": int(order[0])}
    page.press("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowRight")
    assert selection(page) == {"type": "op", "id": int(order[2])}
    op = int(order[2])
    touched = graph["op_touch"][graph["op_touch_start"][op] : graph["op_touch_start"][op + 1]]
    sizes = sorted((graph["storage_bytes"][storage] for storage in touched), reverse=True)
    page.press("ArrowDown")
    first = selection(page) or {}
    assert first["type"] == "storage"
    assert graph["storage_bytes"][first["id"]] == sizes[0]


STORE = "document.querySelector('.sw-streams .plot').plot.store"


def playing(page: Shown) -> bool:
    return bool(page.page.evaluate(f"{STORE}.playing"))


def slot(page: Shown) -> int:
    """Where the selected op is in the order of the plan."""
    order = planned().columns("plan")["order"]
    return int((order == (selection(page) or {})["id"]).argmax())


def test_space_plays_the_ops_in_view_and_pauses_and_so_does_its_button(page: Shown) -> None:
    after = (
        f"slot => {{ const {{ selection, plan }} = {STORE}; return selection && plan.slotOf(selection.id) > slot; }}"
    )
    page.plot("streams").focus()
    page.press("Space")
    page.page.wait_for_function(after, arg=2)
    assert page.page.evaluate(f"{STORE}.cursor") > 0
    page.press("Space")
    paused = slot(page)
    assert not playing(page)
    page.find(".sw-play").click()
    page.page.wait_for_function(after, arg=paused + 1)
    page.picture("playing")
    page.press("Escape")  # what selects something else, or nothing, ends it
    assert not playing(page)
    assert selection(page) is None
    page.find(".sw-play").focus()
    page.press("Space")  # presses the button, and that alone
    assert playing(page)


def test_playing_ends_with_the_last_op_in_view(page: Shown) -> None:
    page.plot("streams").focus()
    page.press(*["w"] * 12)
    page.press("Space")
    page.page.wait_for_function(f"!{STORE}.playing")
    axis = "document.querySelector('.sw-streams .plot').plot.axis"
    last: int = page.page.evaluate(f"{STORE}.plan.slotAt({axis}.seconds({axis}.to))")
    assert slot(page) == last < len(planned().columns("plan")["order"]) - 1


def test_e_shows_all_of_it_on_the_whole_screen_and_back(page: Shown) -> None:
    whole = "document.fullscreenElement === document.querySelector('.sw')"
    page.plot("memory").focus()
    page.press("e")
    page.page.wait_for_function(whole)
    page.settle()
    page.picture("full-screen")
    page.find("button[aria-label='Leave full screen']").click()
    page.page.wait_for_function(f"!({whole})")
    assert page.find("button[aria-label='Full screen']").count() == 1


def test_plus_and_minus_zoom_addresses(page: Shown) -> None:
    span = "({ plot }) => plot.addresses.span / plot.addresses.full"
    page.plot("memory").focus()
    page.press("+", "+")
    assert page.plot("memory").evaluate(span) == pytest.approx(0.75**2)
    page.press("-", "-")
    assert page.plot("memory").evaluate(span) == pytest.approx(1)
    page.press("+", "0")
    assert page.plot("memory").evaluate(span) == pytest.approx(1)


def test_in_the_graph_arrows_move_open_and_close_and_enter_selects(page: Shown) -> None:
    graph = page.plot("graph")
    graph.focus()

    def item() -> str:
        return page.text(f"#{graph.get_attribute('aria-activedescendant')}")

    def opened() -> str | None:
        return page.find(f"#{graph.get_attribute('aria-activedescendant')}").get_attribute("aria-expanded")

    page.press("Home")
    first = item()
    page.press("ArrowDown")
    assert item() != first
    page.press("ArrowUp")
    assert item() == first
    for _ in range(30):
        if opened() is not None:
            break
        page.press("ArrowDown")
    was = opened()
    page.press("ArrowLeft" if was == "true" else "ArrowRight")
    assert {was, opened()} == {"true", "false"}
    page.press("Enter")
    assert page.selected().startswith(item().split(", ")[0].split(" ")[0][:1]) or selection(page)
    assert page.find(f"#{graph.get_attribute('aria-activedescendant')}").get_attribute("aria-selected") == "true"


def test_slash_searches_and_escape_undoes_one_thing_at_a_time(page: Shown) -> None:
    field = page.find("input[type=search]")
    page.plot("memory").focus()
    page.press("ArrowRight", "/")
    assert field.evaluate("field => field === document.activeElement")
    before = view(page)
    page.page.keyboard.type("adw")  # keys of the plots, and no module is called so
    page.settle()
    assert view(page) == before
    assert page.text(".sw-graph .found") == "none"
    field.fill("attention")
    page.settle()
    page.picture("searched")
    paths, targets = planned()["graph"]["module_paths"], planned()["graph"]["targets"]
    kinds = planned()["graph"]["module_kinds"]
    modules = sum(
        "attention" in f"{path}\n{kind}".lower() for path, kind in zip(paths[1:], kinds[1:], strict=True)
    )  # fmt: skip
    ops = sum("attention" in targets[target] for target in planned().columns("graph")["op_target"])
    assert page.text(".sw-graph .found") == f"{modules + ops} found"
    page.press("Escape")
    assert field.input_value() == ""
    assert selection(page) is not None
    page.press("Escape")
    assert selection(page) is None


def test_escape_cancels_a_search_for_plans_last(show: Show) -> None:
    page = show()
    page.publish(planned().having("search", state="running").messages)
    page.plot("memory").focus()
    page.press("ArrowRight", "Escape")
    assert page.requests("cancel") == []
    page.press("Escape")
    assert len(page.requests("cancel")) == 1


def test_a_question_mark_tells_the_keys_and_the_words_and_gives_the_focus_back(page: Shown) -> None:
    page.plot("streams").focus()
    page.press("?")
    page.picture("keys")
    assert page.find("dialog.sw-help").is_visible()
    assert page.find("dialog.sw-help kbd").count() > 15
    assert "time in which compute waits for a copy" in page.text("dialog.sw-help")
    page.press("w", "Escape")
    assert page.find("dialog.sw-help").count() == 0
    assert view(page) == pytest.approx((0, 1))
    assert page.plot("streams").evaluate("host => host === document.activeElement")


def test_tab_goes_through_the_panels_in_reading_order_and_lists_are_one_stop(show: Show) -> None:
    page = show()
    page.publish(trained().messages)
    page.click("memory", *page.held(0.5))
    page.page.evaluate("() => { document.body.tabIndex = -1; document.body.focus(); }")
    panels, stops = [], 0
    for _ in range(80):
        page.page.keyboard.press("Tab")
        where = page.page.evaluate(
            """() => { const at = document.activeElement; const panel = at.closest('section');
              return panel && [panel.className.split('sw-').pop(), at.matches('.holders button')]; }"""
        )
        if where is None:
            break
        panels.append(where[0])
        stops += where[1]
    assert list(dict.fromkeys(panels)) == ["header", "graph", "holders", "memory", "streams", "selection", "bottom"]
    assert stops == 1


def test_what_has_the_focus_has_a_ring(page: Shown) -> None:
    page.page.evaluate("() => { document.body.tabIndex = -1; document.body.focus(); }")
    for _ in range(16):
        page.page.keyboard.press("Tab")
        at = page.page.evaluate_handle("() => document.activeElement").as_element()
        assert at is not None
        box = at.bounding_box()
        assert box is not None
        around = {"x": box["x"] - 4, "y": box["y"] - 4, "width": box["width"] + 8, "height": box["height"] + 8}
        focused = page.page.screenshot(clip=around)
        at.evaluate("element => element.blur()")
        assert page.page.screenshot(clip=around) != focused, at.evaluate("element => element.outerHTML.slice(0, 80)")
        at.focus()


def test_letters_stay_in_the_widget_and_combinations_reach_the_notebook(page: Shown) -> None:
    page.page.evaluate(
        """() => { window.heard = [];
          document.addEventListener('keydown', event => window.heard.push(event.key)); }"""
    )
    page.plot("memory").focus()
    page.press("w", "0", "ArrowDown", "Control+s")
    assert page.page.evaluate("() => window.heard") == ["Control", "s"]


def test_the_wheel_zooms_only_where_the_focus_is(page: Shown) -> None:
    page.move("memory", 300, 100)
    page.wheel(-120)
    assert view(page) == pytest.approx((0, 1))
    page.plot("memory").focus()
    page.wheel(-120)
    low, high = view(page)
    assert high - low < 1


#: Whether the page is kept from scrolling when a plot hears the wheel turn.
KEPT = """(host, turn) => !host.dispatchEvent(new WheelEvent('wheel', {
  ...turn, clientX: host.getBoundingClientRect().x + 200, cancelable: true, bubbles: true }))"""


@pytest.mark.parametrize("panel", ["memory", "streams", "graph"])
def test_where_the_wheel_can_do_nothing_the_page_scrolls(page: Shown, panel: str) -> None:
    page.plot(panel).focus()
    if panel == "graph":
        page.find(".sw-graph button:text-is('Schedule')").click()
        page.plot(panel).focus()
    assert not page.plot(panel).evaluate(KEPT, {"deltaY": 120})
    assert page.plot(panel).evaluate(KEPT, {"deltaY": 120, "ctrlKey": True})
    assert page.plot(panel).evaluate(KEPT, {"deltaY": -120})
    assert page.plot(panel).evaluate(KEPT, {"deltaY": 60})


def test_the_list_of_modules_scrolls_to_its_end_and_then_the_page(page: Shown) -> None:
    page.plot("graph").focus()
    kept = [page.plot("graph").evaluate(KEPT, {"deltaY": by}) for by in (-50, 50, 10**6, 50, -50)]
    assert kept == [False, True, True, False, True]


@pytest.mark.parametrize("key", ["p", "f", "0", "w", "s", "a", "d", "ArrowRight", "ArrowDown", "Escape", "/"])
def test_a_key_lets_go_of_what_was_under_the_pointer_until_that_moves(page: Shown, key: str) -> None:
    page.find(".sw-memory button:text-is('By kind')").click()  # by kind there is a tip everywhere
    page.click("memory", page.x_of("memory", 0.4), 200)
    page.move("memory", page.x_of("memory", 0.2), 200)
    assert page.tip()
    assert page.text(".sw-holders h3") == "Who holds memory"
    page.press(key)
    page.settle()
    assert not page.tip()
    assert page.text(".sw-holders h3") == "Who holds the peak"
    assert not page.inked("memory", over=True)
    page.move("memory", page.x_of("memory", 0.25), 200)
    assert page.text(".sw-holders h3") == "Who holds memory"
