"""A span of time, of addresses or of both is selected by a drag or by keys, and summed up as Python sums it up."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from planner.capture import capture
from planner.graph import Graph
from planner.plan import SwapPlan, Timeline
from planner.profile import machine
from planner.swap import plan_swaps
from planner.zoo import load
from tests.widgets.browser.page import GUTTER, Shown
from tests.widgets.browser.recorded_messages import DEEP, RecordedMessages, says
from tests.widgets.session.message_recorder import MessageRecorder
from widgets.fallback import page_text
from widgets.info import SpanSums, get_span_sums
from widgets.session import Session

Show = Callable[..., Shown]
Pixel = tuple[float, float]
KIND_LABELS = {
    "parameters": "Parameter", "optimizer states": "Optimizer state", "input": "Input", "activations": "Activation",
    "gradients": "Gradient", "workspace": "Workspace",
}  # fmt: skip
SHOWN = 6
#: Share of the step that the page leaves out at both ends of a span.
TIE = 1e-9
#: Budget and method of a plan that runs ops again.
RECOMPUTED = ("80%", "recompute")


@cache
def planned(budget: str = "40%", method: str = "swap") -> tuple[Graph, SwapPlan, RecordedMessages]:
    """A step, a plan of it, and what the page is told of both."""
    graph = capture(load(DEEP))
    plan = plan_swaps(graph, machine("v100-16gb"), budget, method=method, time_limit=2)
    session = Session((graph, plan), machine="v100-16gb", budget=plan.budget_bytes)
    recorder = MessageRecorder(session)
    recorder.planned()
    recorder.wait("plan")
    messages = RecordedMessages(tuple(session.messages()))
    drawn = session.graph  # with the plan's workspaces
    session.close()
    assert drawn is not None
    return drawn, plan, messages


@pytest.fixture
def page(show: Show) -> Shown:
    page = show()
    page.publish(planned()[2].messages)
    return page


def drag(page: Shown, panel: str, begin: Pixel, end: Pixel, release: bool = True) -> None:
    """Drag with Shift held from a pixel of a panel's plot to another."""
    page.move(panel, *begin)
    page.page.keyboard.down("Shift")
    page.page.mouse.down()
    page.move(panel, *end)
    if release:
        page.page.mouse.up()
        page.page.keyboard.up("Shift")
        page.settle()


def selection(page: Shown) -> dict[str, Any] | None:
    found: dict[str, Any] | None = page.plot("streams").evaluate("host => host.plot.store.selection")
    return found


def expected(page: Shown, *which: str) -> SpanSums:
    """What Python makes of the span that is selected, in one of the plans."""
    graph, plan, _ = planned(*which)
    span = selection(page)
    assert span is not None
    (start, stop), timeline = sorted(span["time"] or (0, 1)), as_sent(plan.predicted)
    low, high = sorted(span["addresses"] or (0, plan.peak_bytes))
    seconds = ((start + TIE) * timeline.seconds, (stop - TIE) * timeline.seconds)
    return get_span_sums(graph, plan, seconds, (low, high), timeline)


def as_sent(timeline: Timeline) -> Timeline:
    """The times that the page has, which are of half the digits: a copy that is partly in a span shows the rest."""
    spans = {lane: span.astype(np.float32).astype(np.float64) for lane, span in timeline.spans.items()}
    return replace(timeline, spans=spans)


def rows(page: Shown, label: str) -> list[tuple[str, str]]:
    items = page.find(f".sw-span ul[aria-label='{label}'] li")
    return [(str(item.locator(".n").text_content()), item.locator(".v").inner_text()) for item in items.all()]


def assert_sums_are_those_of_python(page: Shown, sums: SpanSums) -> None:
    facts = page.find(".sw-span .facts > span > span").all_inner_texts()
    streams = [sums.compute_seconds, sums.swap_out_seconds, sums.swap_in_seconds]
    exact = [sums.bytes, sums.most_bytes, sums.bytes_out, sums.bytes_in]
    exact += streams if (selection(page) or {})["time"] else []
    assert len(facts) == len(exact)
    assert says(facts[0], len(sums.storages))
    assert [fact for fact, number in zip(facts, exact, strict=True) if not says(fact, number)] == []
    kinds = rows(page, "Bytes by kind")
    assert sorted(name for name, _ in kinds) == sorted(KIND_LABELS[group] for group in sums.by_group)
    for group, size in sums.by_group.items():
        assert says(dict(kinds)[KIND_LABELS[group]], size)
    modules, entries = rows(page, "Bytes by module"), list(sums.by_module.items())
    whole = entries if len(entries) <= SHOWN else entries[: SHOWN - 1]
    assert [name for name, _ in modules[: len(whole)]] == [name for name, _ in whole]
    assert all(says(text, size) for (_, text), (_, size) in zip(modules, whole, strict=False))
    if len(whole) < len(entries):
        name, text = modules[-1]
        assert name == f"{len(entries) - len(whole)} others"
        assert says(text, sum(size for _, size in entries[len(whole) :]))
    line = page.selected()
    assert says(line, len(sums.storages))
    assert says(line, sums.bytes)


@pytest.mark.parametrize(
    ("panel", "begin", "end", "dimensions"),
    [
        ("memory", (0.3, 60), (0.5, 160), {"time", "addresses"}),
        ("memory", (0.5, 160), (0.3, 60), {"time", "addresses"}),
        ("memory", (0.2, 100), (0.7, 104), {"time"}),  # flat
        ("memory", (0.4, 60), (0.403, 160), {"addresses"}),  # narrow
        ("memory", (-0.02, 70), (0.3, 190), {"addresses"}),  # from the axis of addresses
        ("memory", (0.1, 236), (0.3, 120), {"time"}),  # from that of time
        ("streams", (0.15, 20), (0.85, 120), {"time"}),
    ],
)  # fmt: skip
def test_a_drag_with_shift_selects_a_span_and_says_its_sums(
    page: Shown, panel: str, begin: Pixel, end: Pixel, dimensions: set[str]
) -> None:
    drag(page, panel, (page.x_of(panel, begin[0]), begin[1]), (page.x_of(panel, end[0]), end[1]))
    page.picture(f"span-{panel}-{begin[0]}-{begin[1]}")
    span = selection(page) or {}
    assert span["type"] == "span"
    assert {name for name in ("time", "addresses") if span[name]} == dimensions
    if "time" in dimensions:
        assert span["time"] == pytest.approx([begin[0], end[0]], abs=2e-3)
    assert_sums_are_those_of_python(page, expected(page))


def test_sums_of_a_plan_that_runs_ops_again_are_those_of_python(show: Show) -> None:
    page = show()
    page.publish(planned(*RECOMPUTED)[2].messages)
    drag(page, "memory", (page.x_of("memory", 0.4), 80), (page.x_of("memory", 0.8), 170))
    assert_sums_are_those_of_python(page, expected(page, *RECOMPUTED))


def test_sums_are_there_while_the_pointer_moves_and_escape_ends_the_drag(page: Shown) -> None:
    before = [page.pixels(panel) for panel in ("graph", "memory", "streams")]
    drag(page, "memory", (page.x_of("memory", 0.3), 60), (page.x_of("memory", 0.5), 160), release=False)
    first = page.text(".sw-span .facts")
    page.move("memory", page.x_of("memory", 0.9), 200)
    assert page.text(".sw-span .facts") != first
    assert page.inked("memory", over=True)
    assert [page.pixels(panel) for panel in ("graph", "memory", "streams")] == before, "a drag redrew the data"
    page.press("Escape")
    assert not page.find(".sw-span").is_visible()
    page.move("memory", page.x_of("memory", 0.6), 100)
    page.page.mouse.up()
    page.page.keyboard.up("Shift")
    page.settle()
    assert selection(page) is None
    assert page.text(".sw-holders h3").startswith("Who holds")


def test_what_is_in_it_stands_out_everywhere_and_escape_clears_it(page: Shown) -> None:
    plots = ("graph", "memory", "streams")
    before, holders = [page.pixels(panel) for panel in plots], page.text(".sw-holders .note")
    drag(page, "memory", (page.x_of("memory", 0.3), 60), (page.x_of("memory", 0.5), 160))
    assert [panel for panel, old in zip(plots, before, strict=True) if page.pixels(panel) == old] == []
    assert page.find(".holders").is_hidden()
    page.move("memory", page.x_of("memory", 0.8), 100)
    assert page.find(".sw-span").is_visible()  # pointing shows tensors, and leaves the sums
    page.leave()
    page.press("Escape")
    assert [page.pixels(panel) for panel in plots] == before
    assert page.text(".sw-holders .note") == holders
    assert not page.find(".sw-span").is_visible()


def test_f_zooms_to_it(page: Shown) -> None:
    drag(page, "memory", (page.x_of("memory", 0.3), 60), (page.x_of("memory", 0.5), 160))
    low, high = sorted((selection(page) or {})["addresses"])
    page.press("f")
    state = (
        "({ plot: { axis, addresses } }) => [axis.from / axis.end, axis.to / axis.end, addresses.low, addresses.high]"
    )
    at = page.plot("memory").evaluate(state)
    assert at[:2] == pytest.approx([0.3 - 0.008, 0.5 + 0.008], abs=2e-3)
    assert at[2:] == pytest.approx([low - 0.04 * (high - low), high + 0.04 * (high - low)])


def test_drags_without_shift_and_clicks_with_it_do_what_they_did(page: Shown) -> None:
    page.plot("memory").focus()
    page.press("w", "w")
    view = "({ plot: { axis } }) => axis.from"
    before = page.plot("memory").evaluate(view)
    page.move("memory", 400, 100)
    page.page.mouse.down()
    page.move("memory", 330, 100)
    page.page.mouse.up()
    page.settle()
    assert page.plot("memory").evaluate(view) > before
    assert selection(page) is None
    page.press("0")
    page.click("memory", *page.held(0.5), modifiers=["Shift"])
    assert (selection(page) or {})["type"] == "storage"
    height = page.plot("memory").evaluate("host => host.plot.height")
    drag(page, "memory", (page.x_of("memory", 0.2), height - 12), (page.x_of("memory", 0.4), height - 12))
    assert (selection(page) or {})["type"] == "storage"  # in the step in small, it chooses what is in view
    assert page.plot("memory").evaluate("({ plot: { axis } }) => axis.to / axis.end") == pytest.approx(0.4, abs=0.01)


def test_shift_with_arrows_extends_the_selected_op_by_ops(page: Shown) -> None:
    graph, plan, _ = planned()
    compute, seconds = plan.predicted.compute, plan.predicted.seconds

    def assert_is(stays: float, moves: float, first: int, last: int) -> None:
        ends = [float(share) * seconds for share in (selection(page) or {})["time"]]
        assert ends == pytest.approx([stays, moves], rel=1e-5)
        assert_sums_are_those_of_python(
            page, get_span_sums(graph, plan, (first, last + 1), None, as_sent(plan.predicted), "slots")
        )

    page.plot("streams").focus()
    page.press(*["ArrowRight"] * 6)
    slot = plan.order.index((selection(page) or {})["id"])
    page.press("Shift+ArrowRight")
    assert_is(compute[slot, 0], compute[slot + 1, 1], slot, slot + 1)
    page.press("Shift+ArrowRight")
    assert_is(compute[slot, 0], compute[slot + 2, 1], slot, slot + 2)
    page.press(*["Shift+ArrowLeft"] * 4)
    assert_is(compute[slot, 1], compute[slot - 2, 0], slot - 2, slot)
    page.press("ArrowRight")
    assert (selection(page) or {})["type"] == "op"


def test_shift_with_arrows_extends_the_addresses_of_a_tensor_and_of_a_span(page: Shown) -> None:
    graph, plan, _ = planned()
    page.plot("memory").focus()
    page.press("ArrowRight", "ArrowDown")
    storage = (selection(page) or {})["id"]
    low = min((stay.start, stay.offset) for stay in plan.residencies if stay.storage == storage)[1]
    page.press("Shift+ArrowUp")
    span = selection(page) or {}
    assert span["time"] is None
    assert span["addresses"][0] == low
    assert span["addresses"][1] > low + graph.storages[storage].bytes
    assert_sums_are_those_of_python(page, expected(page))
    page.press("Escape", "ArrowRight", "Shift+ArrowRight", "Shift+ArrowDown")
    span = selection(page) or {}
    full = page.plot("memory").evaluate("host => host.plot.addresses.full")
    assert span["time"]
    assert span["addresses"] == pytest.approx([0, full * 23 / 24])


def test_keys_are_in_the_list_of_keys(page: Shown) -> None:
    page.plot("memory").focus()
    page.press("?")
    assert "sum up a span of time" in page.text("dialog.sw-help")


def test_another_plan_leaves_it_where_it_is_drawn_and_changes_its_sums(page: Shown) -> None:
    drag(page, "streams", (page.x_of("streams", 0.3), 20), (page.x_of("streams", 0.6), 60))
    span = selection(page)
    page.publish(message for message in planned("50%")[2].messages if message.kind == "plan")
    assert selection(page) == span
    assert_sums_are_those_of_python(page, expected(page, "50%"))


def test_a_saved_page_opens_with_it(page: Shown) -> None:
    drag(page, "memory", (page.x_of("memory", 0.3), 60), (page.x_of("memory", 0.5), 160))
    facts, line, span = page.text(".sw-span .facts"), page.selected(), selection(page)
    page.find(".sw-do-export").click()
    page.find(".sw-export-file").last.click()
    shown = page.wait_for_request("export")["shown"]
    path = page.at / "saved.html"
    path.write_text(page_text(planned()[2].messages, shown=shown), encoding="utf-8")
    page.page.goto(path.as_uri())
    page.page.wait_for_selector(".sw-span:visible")
    assert selection(page) == span
    assert (page.text(".sw-span .facts"), page.selected()) == (facts, line)


def test_beside_streams_alone_the_sums_are_over_the_side_that_is_free(show: Show) -> None:
    page = show(["streams", "selection"])
    page.publish(planned()[2].messages)
    for begin, end in ((0.1, 0.2), (0.8, 0.9)):
        x = [page.x_of("streams", share) for share in (begin, end)]
        drag(page, "streams", (x[0], 30), (x[1], 30))
        page.picture(f"span-streams-{begin}")
        card, plot = page.find(".sw-span").bounding_box(), page.plot("streams").bounding_box()
        assert card is not None
        assert plot is not None
        left, right = card["x"] - plot["x"], card["x"] - plot["x"] + card["width"]
        assert right < x[0] or left > x[1]
        assert left >= GUTTER
        assert card["y"] + card["height"] <= plot["y"] + plot["height"]
        assert_sums_are_those_of_python(page, expected(page))
        page.press("Escape")


@pytest.mark.parametrize(("theme", "width"), [("light", 480), ("dark", 700), ("light", 1000), ("dark", 1240)])
def test_numbers_are_whole_at_any_width(show: Show, theme: str, width: int) -> None:
    page = show(theme=theme, width=width)
    page.publish(planned()[2].messages)
    drag(page, "memory", (page.x_of("memory", 0.3), 60), (page.x_of("memory", 0.5), 160))
    page.picture(f"span-{theme}-{width}")
    cut = """body => [...body.querySelectorAll('.v, .facts > span > span')].filter(element =>
      element.scrollWidth > element.clientWidth + 1
      || element.getBoundingClientRect().right > body.getBoundingClientRect().right)
      .map(element => element.textContent)"""
    assert page.find(".sw-span-body").evaluate(cut) == []
