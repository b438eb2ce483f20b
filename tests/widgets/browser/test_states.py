"""What is shown where there is nothing to show, or nobody to ask, or names and sizes that nobody foresaw."""

import re
from collections.abc import Callable
from functools import cache

import pytest
import torch
from torch import nn

from planner.graph import Graph, GraphBuilder, Kind
from planner.step import InferenceStep, TrainStep
from tests.effort import EFFORT
from tests.widgets.browser.page import EVERY_PANEL, Shown
from tests.widgets.browser.recorded_messages import RecordedMessages, planned, says
from tests.widgets.session.message_recorder import MessageRecorder
from widgets.messages.state_messages import loading_message, notice_message, refused_message
from widgets.session import Session

Show = Callable[..., Shown]


def told_of(source: object, **options: object) -> RecordedMessages:
    session = Session(source, **options)  # type: ignore[arg-type]
    recorder = MessageRecorder(session)
    recorder.planned()
    recorder.wait("plan")
    recorded = RecordedMessages(tuple(session.messages()))
    session.close()
    return recorded


def odd_words(page: Shown) -> list[str]:
    text = page.page.evaluate("() => document.querySelector('main').innerText")
    return [odd for odd in ("NaN", "undefined", "Infinity", "null", "[object") if odd in text]


def test_before_the_kernel_has_said_anything_it_says_that_it_waits(show: Show) -> None:
    page = show()
    page.picture("waiting")
    assert "Waiting for the kernel" in page.text(".sw-instead [role=status]")


def test_while_the_step_is_captured_it_counts_ops_and_seconds_and_can_be_cancelled(show: Show) -> None:
    page = show()
    page.publish([loading_message("gpt", "capturing the step", 0.4, 1234, 2.34)])
    page.picture("loading")
    sentence = page.text(".sw-instead [role=status]")
    assert sentence.startswith("Capturing the step")
    assert "1,234 PyTorch calls so far" in sentence
    assert says(sentence, 2.34)
    assert page.text(".sw-instead h2") == "gpt"
    cancel = page.find(".sw-instead button")
    cancel.click()
    cancel.click(force=True)
    assert len(page.requests("cancel_loading")) == 1


def test_then_the_panels_take_its_place(show: Show) -> None:
    page = show()
    page.publish([loading_message("gpt", "capturing the step", None, None, 0.1), *planned().messages])
    assert not page.find(".sw-instead").is_visible()
    assert page.inked("memory")


def test_a_step_that_cannot_be_captured_says_why_in_full(show: Show) -> None:
    class Undecided(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight if self.weight.sum() > 0 else x - self.weight

    step = TrainStep(Undecided(), torch.ones(3), loss=lambda model, x: model(x).sum())
    session = Session(step)
    refused = MessageRecorder(session).wait("refused")
    page = show()
    page.publish(session.messages())
    page.picture("refused")
    assert page.text(".sw-instead h2") == refused["title"]
    assert page.text(".sw-instead [role=status]") == refused["sentence"]
    assert not page.find(".sw-instead button").is_visible()
    assert page.find("section.sw-memory").is_hidden()


def test_a_kernel_that_does_not_answer_is_said_to_be_away_and_back_when_it_does(show: Show) -> None:
    page = show(deaf=True)
    page.page.wait_for_selector(".sw-banner:visible")
    page.picture("away")
    assert page.text(".sw-banner") == "The kernel is busy. If it was restarted, run this cell again."
    page.publish(planned().messages)
    assert not page.find(".sw-banner").first.is_visible()


def test_a_page_opened_in_the_middle_of_a_search_hears_news_before_the_graph(show: Show) -> None:
    page = show()
    page.publish(message for message in planned().messages if message.kind != "graph")
    assert page.find(".sw-instead").is_visible()
    page.publish(planned().messages)
    assert not page.find(".sw-instead").is_visible()
    assert page.inked("memory")


def test_a_kernel_that_dies_under_an_open_widget_leaves_what_is_drawn_usable(show: Show) -> None:
    page = show()
    page.publish(planned().messages)
    page.page.evaluate("() => { wire.deaf = true; }")
    page.find(".sw-do-search").click()
    page.page.wait_for_selector(".sw-banner:visible")
    page.click("memory", *page.held(0.5))
    assert "Nothing selected" not in page.selected()
    page.page.evaluate("() => { wire.deaf = false; }")
    page.find(".sw-do-search").click()
    page.page.wait_for_selector(".sw-banner", state="hidden")


def test_where_no_plan_fits_the_map_says_what_it_shows_instead(show: Show) -> None:
    page = show()
    page.publish(planned(budget=1000).messages)
    assert page.text(".sw-memory .note") == "no plan fits; shown without swapping"


def test_a_module_whose_name_is_a_number_is_named_with_its_class(show: Show) -> None:
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 8))
    page = show()
    page.publish(told_of(InferenceStep(model, torch.ones(4096, 8)), budget="100%").messages)
    assert re.fullmatch(r"Why\? Activations hold \d+ % of the peak, in [012] \((Linear|ReLU)\)", page.text(
        ".sw-answer-box:nth-child(3)"))  # fmt: skip


def test_news_are_told_in_one_line_that_is_read_aloud(show: Show) -> None:
    page = show()
    page.publish([*planned().messages, notice_message("Saved step.plan.json.")])
    assert page.text(".sw-selection .news") == "Saved step.plan.json."
    assert page.find(".sw-selection .news").get_attribute("role") == "status"


def test_one_op(show: Show) -> None:
    page = show()
    page.publish(told_of(InferenceStep(nn.Linear(3, 2), torch.ones(4, 3))).messages)
    page.picture("one-op")
    assert "1 op" in page.text(".sw-facts")
    assert odd_words(page) == []
    page.plot("memory").focus()
    page.press("p", "f", "ArrowRight", "ArrowDown", "w", "0")
    assert odd_words(page) == []


def test_no_op_at_all(show: Show) -> None:
    page = show()
    page.publish(told_of(Graph("nothing", (), (), ())).messages)
    page.picture("no-op")
    page.plot("memory").focus()
    page.press("p", "f", "ArrowRight", "ArrowDown", "w", "0")
    assert "no op" in page.summary("graph")
    assert odd_words(page) == []


def test_tensors_without_bytes(show: Show) -> None:
    build = GraphBuilder("hollow")
    build.modules |= {"": "Net"}
    full = build.add_tensor("x", build.add_storage("x", 64, Kind.INPUT), (16,))
    none = build.add_tensor("none", build.add_storage("none", 0, Kind.PARAMETER), (0,))
    result = build.add_tensor("y", build.add_storage("y", 0, Kind.OUTPUT), (0,))
    build.add_op("cat", "aten.cat.default", [full, none], [result])
    page = show()
    page.publish(told_of(build.build([result])).messages)
    page.picture("no-bytes")
    page.plot("memory").focus()
    page.press("ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown", "f")
    assert says(page.selected(), 0)
    assert odd_words(page) == []


BAD = '<img src=x onerror="window.injected=1"><script>window.injected=1</script>'


@cache
def hostile() -> RecordedMessages:
    build = GraphBuilder(f"модель 模型 {BAD}")
    build.modules |= {"": BAD, f"слой{BAD}": f"Слой{BAD}", f"слой{BAD}.\N{ROCKET}": "</style></script>"}
    values = []
    for number in range(6):
        name = f"вес {number} {BAD}"
        kind = Kind.PARAMETER if number % 2 else Kind.ACTIVATION
        value = build.add_tensor(name, build.add_storage(name, 4096 * (number + 1), kind), (1024 * (number + 1),))
        if kind is Kind.ACTIVATION:
            build.add_op(
                f"{name}/op", f"aten.{BAD}.default", values[-1:], [value], module=f"слой{BAD}.\N{ROCKET}"
            )  # fmt: skip
        values.append(value)
    return told_of(build.build(values[-2:-1]), budget="100%")


def test_names_in_other_scripts_and_with_markup_are_shown_as_they_are_and_nothing_is_injected(show: Show) -> None:
    recorded = hostile().having("run", state="failed", sentence=BAD).having("search", state="failed", sentence=BAD)
    recorded = recorded.having("budget", state="none", sentence=BAD, verdict="swap")
    recorded = recorded.but(notice_message(BAD)).having("machine", label=BAD, machines=[[BAD, BAD, 1]])
    for theme in ("light", "dark"):
        page = show(theme=theme)
        page.publish([loading_message(BAD, BAD, 0.1, 1, 1.0), *recorded.messages])
        page.picture(f"hostile-{theme}")
        assert page.text(".sw-header h2") == recorded["graph"]["name"]
        for panel in ("graph", "memory", "streams"):
            box = page.plot(panel).bounding_box()
            assert box is not None
            for x in range(70, int(box["width"]) - 20, 160):
                for y in range(15, int(box["height"]) - 40, 40):
                    page.move(panel, x, y)
            page.click(panel, box["width"] / 2, box["height"] / 2)
        for button in ("Schedule", "By kind", "Run", "Search"):
            page.find(f":is(button, [role=tab]):text-is('{button}')").last.click()
            page.settle()
        page.find(".sw-holders button").first.click()
        page.find("input[type=search]").fill("<img")
        page.settle()
        assert BAD in page.selected() or BAD in page.text(".sw-graph .sr[role=status]")
        assert page.find("main img, main script, main style").count() == 0
        assert page.page.evaluate("() => window.injected") is None


def test_a_refusal_with_markup_in_it_is_text(show: Show) -> None:
    page = show()
    page.publish([refused_message(BAD, BAD)])
    assert page.text(".sw-instead h2") == BAD
    assert page.page.evaluate("() => window.injected") is None


@pytest.mark.parametrize("name", ["", "x" * 600, "several\nlines"])
def test_any_name_leaves_the_frame_in_its_place(show: Show, name: str) -> None:
    page = show(width=1000)
    page.publish(planned().having("graph", name=name).messages)
    assert page.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert page.find(".sw-do-run").is_visible()


def long_graph(ops: int) -> Graph:
    """A chain whose every result is kept."""
    build = GraphBuilder("long")
    build.modules |= {"": "Net", **{f"layers.{layer}": "Layer" for layer in range(ops // 40)}}
    values = [build.add_tensor("x", build.add_storage("x", 4096, Kind.INPUT), (1024,))]
    for number in range(ops):
        module = f"layers.{number // 40}"
        name = f"{module}/relu {number}"
        values.append(build.add_tensor(name, build.add_storage(name, 4096, Kind.ACTIVATION), (1024,)))
        build.add_op(name, "aten.relu.default", [values[-2]], [values[-1]], module=module)
    return build.build(values[1:])


def test_tens_of_thousands_of_ops_open_and_answer(show: Show) -> None:
    ops = 15_000 * EFFORT
    page = show()
    page.publish(told_of(long_graph(ops)).messages)
    page.picture("many-ops")
    assert says(page.text(".sw-facts"), ops)
    assert all(page.inked(panel) for panel in ("graph", "memory", "streams"))
    page.plot("memory").focus()
    page.press("w", "w", "d", "p", "ArrowRight", "f", "0")
    page.find("input[type=search]").fill("relu")
    page.settle()
    assert page.text(".sw-graph .found") == f"{ops:,} found"
    page.find(".sw-graph button:text-is('Schedule')").click()
    page.settle()
    assert page.inked("graph")


@pytest.mark.parametrize("panel", EVERY_PANEL)
def test_a_panel_can_be_taken_away_at_any_time(show: Show, panel: str) -> None:
    page = show([panel])
    page.publish(planned().messages[:3])
    page.take_away()
    page.page.evaluate("messages => wire.tell(messages, null)", [])
    page.publish(planned().messages)
    page.page.evaluate("() => { document.body.dataset.jpThemeLight = 'false'; }")
    page.settle()
    assert page.find(".sw").count() == 0
