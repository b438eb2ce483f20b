"""Search and run: what they ask, how they stand, and two plans side by side."""

import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from playwright.sync_api import expect
from torch import nn

import planner
import widgets
from planner import zoo
from planner.step import TrainStep
from planner.swap import METHODS
from planner.swap.baselines.registry import BASELINES
from tests.widgets.browser.live import Live
from tests.widgets.browser.page import EVERY_PANEL, Shown
from tests.widgets.browser.recorded_messages import DEEP, RecordedMessages, planned, says, trained
from tests.widgets.session.message_recorder import MessageRecorder
from widgets.messages.state_messages import compare_message
from widgets.session import Session

Show = Callable[..., Shown]


@pytest.fixture
def live(show: Show) -> Iterator[Callable[[Session], Live]]:
    sessions: list[Session] = []

    def one(session: Session) -> Live:
        sessions.append(session)
        return Live(show(), session)

    yield one
    for session in sessions:
        session.close()


def open_at(show: Show, recorded: RecordedMessages) -> Shown:
    page = show()
    page.publish(recorded.messages)
    return page


def test_a_search_goes_on_is_cancelled_and_resumed_while_the_curve_and_the_plan_follow(
    live: Callable[[Session], Live],
) -> None:
    here = live(Session(zoo.load(DEEP), budget="30%", machine="v100-16gb"))
    page, button = here.shown, here.shown.find(".sw-do-search")
    here.until("() => document.querySelector('.sw-do-search')?.textContent === 'Search'")
    here.until("() => !document.querySelector('.sw-do-search').hasAttribute('aria-disabled')")
    button.click()
    here.until("() => document.querySelector('.sw-do-search').textContent === 'Cancel'")
    assert page.find(".btn.primary").all_text_contents() == ["Cancel"]
    here.until("() => document.querySelector('.sw-bottom').textContent.includes('evaluation')")
    page.picture("searching")
    button.click()
    page.wait_for_request("cancel")
    here.until("() => document.querySelector('.sw-do-search').textContent === 'Resume'")
    search = here.session.search
    assert search is not None
    best = search.wait()  # the last plan that it found is drawn after it was cancelled
    drawn = "most => document.querySelector('.sw-memory .plot').plot.store.plan.step_seconds <= most"
    here.until(drawn, best.predicted.seconds * (1 + 1e-9))
    plan = here.session.plan
    assert plan is not None
    here.until("cost => document.querySelector('.sw-search-tab .plot > p.sr').textContent.includes('Best')", 0)
    assert says(page.text(".sw-answer-box:nth-child(2)"), plan.predicted.seconds)
    before = search.progress.evaluations
    button.click()
    here.until("() => document.querySelector('.sw-do-search').textContent === 'Cancel'")
    here.until("least => document.querySelector('.sw-memory .plot').plot.store.search.evaluations > least", before)
    page.press("Escape")
    here.until("() => document.querySelector('.sw-do-search').textContent === 'Resume'")
    assert [request["do"] for request in page.page.evaluate("() => wire.requests")] == [
        "ready", "search", "cancel", "resume", "cancel",
    ]  # fmt: skip


def test_cancelled_before_its_first_plan_it_says_how_to_go_on(show: Show) -> None:
    sentence = "The search was stopped before it had any plan: resume it, or let it run a little longer."
    recorded = planned().having("search", state="cancelled", history=[], baselines=[], sentence=sentence)
    page = open_at(show, recorded)
    assert sentence in page.text(".sw-search-tab")
    assert page.text(".sw-do-search") == "Resume"


def test_the_curve_tells_the_best_the_bound_and_each_find(show: Show) -> None:
    page = open_at(show, trained())
    search = trained()["search"]
    words = page.summary("search-tab")
    assert says(words, search["history"][-1][2])
    assert says(words, search["bound_seconds"])
    page.plot("search-tab").focus()
    page.press("ArrowRight")
    seconds, evaluations, cost, method = search["history"][-1]
    tip = page.tip()
    assert says(tip["step time"], cost)
    assert (tip["found by"], says(tip["evaluations"], evaluations)) == (method, True)
    assert "over lower bound" in tip
    assert seconds <= search["seconds"]


def test_every_name_beside_the_curve_has_a_tip_that_says_what_it_is(show: Show) -> None:
    cost = trained()["search"]["history"][-1][2]
    known = [[name, cost * (1.5 + number)] for number, name in enumerate(BASELINES)]
    page = open_at(show, trained().having("search", baselines=known))
    places = page.plot("search-tab").evaluate(
        "({ plot }) => plot.labels.map(({ name, place }) => [name ?? '', plot.scaled.right + 20, place])"
    )
    named = {name: (x, y) for name, x, y in places if name}
    assert {*BASELINES, "lower bound"} <= set(named)
    for name, (x, y) in named.items():
        page.move("search-tab", x, y)
        assert page.tip()[""] == name
        assert len(page.text(".sw-tip p").split()) >= 4


def front(recorded: RecordedMessages) -> list[list[float]]:
    return [point for point in recorded["front"]["points"] if point[6]]


def place(page: Shown, point: list[float]) -> tuple[float, float]:
    x, y = page.plot("search-tab .sw-col:nth-child(2)").evaluate(
        "({ plot: { scaled } }, point) => [scaled.x(point[0]), scaled.y(point[1])]", point
    )
    return x, y


FRONT = "search-tab .sw-col:nth-child(2)"


def test_a_point_of_the_front_is_taken_by_a_click_and_compared_by_a_shift_click(show: Show) -> None:
    page = open_at(show, trained())
    point = front(trained())[1]
    x, y = place(page, point)
    page.move(FRONT, x, y)
    tip = page.tip()
    assert says(tip["budget"], point[0])
    assert says(tip["step time"], point[1])
    assert says(tip["tensors moved"], point[3])
    page.picture("front")
    page.click(FRONT, x, y)
    assert page.wait_for_request("take")["bytes"] == point[0]
    page.click(FRONT, x, y, modifiers=["Shift"])
    assert page.wait_for_request("compare")["bytes"] == point[0]


def test_keys_go_along_the_front_take_and_compare(show: Show) -> None:
    page = open_at(show, trained())
    points = front(trained())
    page.plot(FRONT).focus()
    page.press("ArrowRight", *["ArrowLeft"] * len(points), "Enter")
    assert page.wait_for_request("take")["bytes"] == points[0][0]
    page.press("ArrowRight", "Shift+Enter")
    assert page.wait_for_request("compare")["bytes"] == points[1][0]
    assert says(page.summary(FRONT), points[1][0])


def test_two_plans_side_by_side_differ_by_what_python_says(show: Show) -> None:
    plan, points = trained()["plan"], front(trained())
    budget, seconds, out, moved, stalled, ideal, _, again = points[0]
    other = {
        "budget_bytes": budget, "step_seconds": seconds, "stall_seconds": stalled, "bytes_out": out, "moved": moved,
        "percent_of_ideal": ideal, "valid": True, "recompute_seconds": again + 1e-3,
    }  # fmt: skip
    page = open_at(show, trained().but(compare_message("3.00 MiB", other)))
    rows = {
        row.locator("th").inner_text(): row.locator("td").all_inner_texts()
        for row in page.find(".sw-difference tbody tr").all()
    }
    page.picture("compared")
    assert page.find(".sw-do-compare").get_attribute("aria-pressed") == "true"
    for name, field in (
        ("Budget", "budget_bytes"), ("Step time", "step_seconds"), ("Swapped out", "bytes_out"),
        ("Tensors moved", "moved"), ("Run again", "recompute_seconds"),
    ):  # fmt: skip
        a, b, between = rows[name]
        assert says(a, plan[field]), name
        assert says(b, other[field]), name
        assert between[0] == (
            "+" if plan[field] > other[field] else "\N{MINUS SIGN}" if plan[field] < other[field] else "="
        )
        assert between == "=" or says(between, abs(plan[field] - other[field])), name
    page.find(".sw-do-compare").click()
    assert page.wait_for_request("compare", 1)["bytes"] is None


def test_compare_takes_the_next_plan_that_is_not_this_one(show: Show) -> None:
    page = open_at(show, trained())
    page.find(".sw-do-compare").click()
    here = trained()["budget"]["budget_bytes"]
    asked = page.wait_for_request("compare")["bytes"]
    assert asked in [point[0] for point in front(trained())]
    assert abs(asked / here - 1) > 0.01


def test_the_method_is_chosen_beside_the_curve_and_said_by_python(show: Show) -> None:
    page = open_at(show, trained())
    choice = page.find("select[aria-label='Method of the search']")
    assert choice.input_value() == trained()["search"]["method"] == "auto"
    choice.select_option("joint")
    assert page.wait_for_request("method")["method"] == "joint"
    page.publish(trained().having("search", method="swap").messages)
    assert choice.input_value() == "swap"
    page.publish(trained().having("search", state="nothing").messages)
    assert choice.is_disabled()
    assert {option.get_attribute("value") for option in choice.locator("option").all()} <= set(METHODS)


def test_tabs_are_one_stop_with_arrows_between_them(show: Show) -> None:
    page = open_at(show, trained())
    tabs = page.find("[role=tab]")
    assert tabs.all_text_contents() == ["Search", "Plans", "Partition", "Run"]
    tabs.nth(0).focus()
    for key, chosen in (("ArrowRight", 1), ("End", 3), ("ArrowRight", 0), ("ArrowLeft", 3), ("Home", 0)):
        page.press(key)
        assert [tab.get_attribute("aria-selected") for tab in tabs.all()].index("true") == chosen
        assert [tab.get_attribute("tabindex") for tab in tabs.all()] == ["-1" if k != chosen else "0" for k in range(4)]
        assert [panel.is_visible() for panel in page.find("[role=tabpanel]").all()] == [chosen == k for k in range(4)]
        assert tabs.nth(chosen).evaluate("tab => tab === document.activeElement")


def run_tab(page: Shown) -> str:
    page.find("[role=tab]:text-is('Run')").click()
    page.settle()
    return page.text(".sw-run-tab")


def test_before_a_run_it_says_what_running_does_and_asks_for_three_steps(show: Show) -> None:
    page = open_at(show, planned())
    assert "Nothing has run yet." in run_tab(page)
    page.find(".sw-run-tab button:text-is('Run 3 steps')").click()
    asked = page.wait_for_request("run")
    assert {key: asked[key] for key in ("do", "steps", "check")} == {"do": "run", "steps": 3, "check": True}


@pytest.mark.parametrize("panels", [EVERY_PANEL, ("run",)])
def test_a_graph_without_its_step_is_not_offered_to_be_run_and_says_why(show: Show, panels: tuple[str, ...]) -> None:
    graph = planner.capture(zoo.load("mlp:layers=3"))
    plan = planner.plan_swaps(graph, planner.machine("v100-16gb"), "60%", method="swap")
    session = Session((graph, plan))
    MessageRecorder(session).planned()
    page = show(panels)
    page.publish(session.messages())
    session.close()
    button = page.find(".sw-do-run")
    page.picture(f"no-step-{len(panels)}")
    expect(button).to_have_attribute("aria-disabled", "true")
    expect(button).to_have_attribute("title", re.compile("open the Workbench with the step"))
    button.click(force=True)
    if len(panels) > 1:
        expect(page.find(".sw-head .sw-reason")).to_have_text("no step to run")
        assert "primary" in (page.find(".sw-do-search").get_attribute("class") or "")
        run_tab(page)
    again = page.find(".sw-empty button")
    expect(again).to_have_text("Run 3 steps")
    expect(again).to_have_attribute("aria-disabled", "true")
    assert "open the Workbench with the step" in page.text(".sw-run-cols")
    again.click(force=True)
    assert page.requests("run") == []


def test_where_no_plan_can_be_faster_to_run_is_the_thing_to_do(show: Show) -> None:
    recorded = planned()
    page = open_at(show, recorded)
    assert page.find(".btn.primary").all_text_contents() == ["Search"]
    page.publish(recorded.having("plan", step_seconds=recorded["plan"]["ideal_seconds"]).messages)
    assert "ideal, no op waits" in page.text(".sw-answer-box:nth-child(2)")
    assert page.find(".btn.primary").all_text_contents() == ["Run on this CPU"]


def test_a_step_captured_for_a_gpu_runs_on_it(show: Show) -> None:
    page = open_at(show, planned().having("graph", device="cuda"))
    assert page.find(".sw-do-run").all_text_contents() == ["Run on this GPU"]
    assert page.find(".sw-do-search").get_attribute("aria-disabled") is None


def test_what_was_run_shows_measured_beside_predicted_losses_and_that_the_bits_agree(show: Show) -> None:
    recorded = trained()
    page = open_at(show, recorded)
    words, run = run_tab(page), recorded["run"]
    page.picture("run-done")
    assert (run["state"], run["mismatched"]) == ("done", 0)
    assert "Identical to eager" in page.text(".sw-badge")
    assert says(page.text(".sw-badge"), run["compared"])
    for exact in (run["step_seconds"][0], run["step_seconds"][1], run["predicted_step_seconds"], run["losses"][1]):
        assert says(words, exact)
    assert says(words, float(np.median(run["eager_step_seconds"][1:])))
    spoken = page.summary("run-tab")
    assert says(spoken, run["peak_bytes"])
    assert says(spoken, run["predicted_peak_bytes"])
    page.plot("run-tab").focus()
    page.press("ArrowRight", "ArrowRight")
    assert {"predicted", "measured", "difference"} <= set(page.tip())


def test_a_run_goes_on_and_is_stopped_between_steps(live: Callable[[Session], Live]) -> None:
    here = live(Session(zoo.load("mlp:layers=6"), machine="cpu", budget="150%"))
    here.until("() => !document.querySelector('.sw-do-run')?.hasAttribute('aria-disabled')")
    here.session.start_run(10**5, check=False)
    here.shown.find("[role=tab]:text-is('Run')").click()
    here.until("() => document.querySelector('.sw-memory .plot').plot.store.run.step_seconds.length > 2")
    assert here.shown.text(".sw-do-run") == "Stop"
    here.shown.picture("running")
    here.shown.find(".sw-do-run").click()
    here.until("() => document.querySelector('.sw-do-run').textContent === 'Run on this CPU'")
    made = len(here.session.run.losses) if here.session.run is not None else 0
    assert says(here.shown.text(".sw-status"), made)
    here.shown.wait_for_request("cancel_run")


def test_one_plan_is_one_plan_and_that_nothing_was_searched_is_said_once(show: Show) -> None:
    recorded = trained().having("front", points=front(trained())[:1])
    idle = recorded.having(
        "search", state="idle", history=[], baselines=[], sentence="Not searched yet. Trivial first."
    )
    page = open_at(show, idle)
    assert page.summary(FRONT).startswith("1 plan on the front, ")
    assert page.text(".sw-search-tab .sw-empty").count("ot searched yet") == 1


def test_the_first_step_warms_up_and_hides_nothing_of_the_others(show: Show) -> None:
    recorded = trained().having(
        "run", steps=6, step_seconds=[3.0, 0.1, 0.2, 0.15, 0.3, 0.12], predicted_step_seconds=0.1
    )
    page = open_at(show, recorded.having("run", steps=6, step_seconds=[3.0], predicted_step_seconds=0.1))
    assert "the first step warms up" in run_tab(page)
    page.publish(recorded.messages)
    words = page.text(".sw-run-tab")
    page.picture("run-warm-up")
    assert says(words, 3.0)
    assert "+50.0 % on prediction" in words
    rows = page.find(".sw-run-tab .sw-bar").evaluate_all(
        "rows => rows.map(row => [row.firstChild.textContent, row.querySelector('.sw-bar-track > i').offsetWidth])"
    )
    width = dict(rows)
    assert width["1: warm-up"] > width["step 5"] > 1.8 * width["step 6"] > 20


def test_what_begins_elsewhere_comes_to_the_front_once(show: Show) -> None:
    recorded = trained()
    page = open_at(show, recorded)

    def tab() -> str:
        return page.text("[role=tab][aria-selected=true]")

    assert tab() == "Search"
    page.publish(recorded.having("run", state="planning").messages)
    assert tab() == "Run"
    page.find("[role=tab]:text-is('Search')").click()
    page.publish(recorded.having("run", state="running").messages)
    assert tab() == "Search"
    page.publish(recorded.messages)
    page.find("[role=tab]:text-is('Run')").click()
    page.publish(recorded.having("search", state="running").messages)
    assert tab() == "Search"


def test_a_run_that_was_started_from_python_is_shown_also_where_it_is_heard_of_when_it_is_over(show: Show) -> None:
    bench = widgets.Workbench(zoo.load("mlp:layers=2"), machine="cpu", budget="100%")
    bench.start_run(1)
    assert bench.run is not None
    bench.run.wait()
    page = show(tab=bench.tab)
    page.publish(bench.session.messages())
    bench.close()
    expect(page.find("[role=tab][aria-selected=true]")).to_have_text("Run")


def test_a_run_that_fails_in_step_2_says_where_and_what_is_kept(live: Callable[[Session], Live]) -> None:
    class Fragile(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(12, 8)

        def forward(self, words: torch.Tensor) -> torch.Tensor:
            return self.words(words).square().sum()

    step = TrainStep(Fragile(), torch.arange(6), loss=lambda model, batch: model(batch))
    here = live(Session(step, machine="cpu", budget="200%"))
    here.until("() => !document.querySelector('.sw-do-run')?.hasAttribute('aria-disabled')")
    here.session.start_run(10**5, check=False)
    here.until("() => document.querySelector('.sw-memory .plot').plot.store.run?.step_seconds.length > 0")
    step.batch_leaves()[0][4] = 12  # no such word
    here.until("() => document.querySelector('.sw-memory .plot').plot.store.run.state === 'failed'")
    words = run_tab(here.shown)
    here.shown.picture("run-failed")
    assert "embedding" in words
    assert "finished steps" in words
    assert "the run failed" in here.shown.text(".sw-status")


@pytest.mark.parametrize("width", [1008, 568, 332])
def test_a_note_on_the_run_is_shown_whole(show: Show, width: int) -> None:
    note = (
        "Planned anew for this CPU, and drawn, within the same budget: blocks.0.attention/softmax takes "
        "46.5 KiB of temporary memory here, and the plan, made for v100-16gb, has 34 KiB for it and nothing to spare."
    )
    page = show(width=width)
    page.publish(trained().having("run", note=note).messages)
    run_tab(page)
    shown = page.find(".sw-run-cols .sw-stopped")
    assert shown.text_content() == note
    overflow = shown.evaluate("e => [e.scrollHeight - e.clientHeight, e.scrollWidth - e.clientWidth]")
    assert overflow == [0, 0]
    panel, text = (page.find(part).bounding_box() for part in (".sw-run-cols", ".sw-run-cols .sw-stopped"))
    assert panel
    assert text
    assert text["y"] + text["height"] <= panel["y"] + panel["height"]
    page.picture(f"run-note-{width}")


def test_a_run_without_room_is_no_run_that_stopped(show: Show) -> None:
    sentence = "Running gpt on this computer takes 29 GiB of memory. The model is as it was."
    page = open_at(show, planned().having("run", state="refused", sentence=sentence, steps=3))
    run_tab(page)
    assert "too little memory free" in page.find(".sw-run-tab .sw-empty b").inner_text()
    assert page.find(".sw-run-tab .sw-empty p").first.inner_text() == sentence
    assert page.find(".sw-run-tab .sw-empty .btn").inner_text() == "Try again"


def test_bits_that_differ_are_counted_and_not_called_identical(show: Show) -> None:
    page = open_at(show, trained().having("run", mismatched=2, sentence="2 tensors differ: a, b."))
    run_tab(page)
    assert says(page.text(".sw-badge"), 2)
    assert "differ" in page.text(".sw-badge")
    assert "Identical" not in page.text(".sw-badge")
