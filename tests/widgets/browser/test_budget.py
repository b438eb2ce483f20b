"""The budget moves, the verdict follows at once, and Python is asked when it rests."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from planner import zoo
from tests.effort import combinations
from tests.widgets.browser.page import Shown, wired
from tests.widgets.browser.recorded_messages import SMALL, RecordedMessages, planned, says, trained
from tests.widgets.session.message_recorder import MessageRecorder
from widgets.session import Session

Show = Callable[..., Shown]
MIB = 2**20


def open_at(show: Show, recorded: RecordedMessages) -> Shown:
    page = show()
    page.publish(recorded.messages)
    return page


def answer(page: Shown, which: int = 1) -> str:
    return page.text(f".sw-answer-box:nth-child({which})")


def place(machine: dict[str, Any], size: float) -> float:
    """Where a budget near the step's peak is on the slider, whose last sixth is for a device with much more."""
    near, end = machine["near_bytes"], machine["slider_bytes"]
    assert size <= near
    return float(size / end if end <= 1.3 * near else 0.84 * size / near)


#: Do something to the slider, and say what the verdict is and how many budgets were asked for in the same moment.
AT_ONCE = """acts => acts.map(([kind, value]) => {
  const slider = document.querySelector('.sw input[type=range]');
  if (kind === 'key') slider.dispatchEvent(new KeyboardEvent('keydown', { key: value, cancelable: true }));
  else { slider.value = value; slider.dispatchEvent(new Event('input', { bubbles: true })); }
  const asked = wire.requests.filter(request => request.do === 'budget');
  const said = document.querySelector('.sw-header .sw-answers').innerText;
  return [said, slider.getAttribute('aria-valuetext'), asked.length];
})"""


def test_a_move_of_the_slider_changes_the_verdict_at_once_and_python_is_asked_when_it_rests(show: Show) -> None:
    page = open_at(show, trained())
    machine = trained()["machine"]
    moves = [["drag", share / 10] for share in range(3, 9)]
    *_, least, end = page.page.evaluate(AT_ONCE, [*moves, ["key", "Home"], ["key", "End"]])
    assert "Needs a plan" in least[0]
    assert says(least[0], machine["step_peak_bytes"] - machine["least_bytes"])
    assert "needs a plan" in least[1]
    assert "Fits" in end[0]
    assert says(end[0], machine["ideal_seconds"])
    assert (least[2], end[2]) == (0, 0)
    assert page.wait_for_request("budget")["bytes"] == machine["slider_bytes"]
    page.settle()
    assert len(page.requests("budget")) == 1


@pytest.mark.parametrize(("key", "mark"), [("Home", "least_bytes"), ("End", "slider_bytes")])
def test_keys_go_to_the_ends_of_what_is_possible(show: Show, key: str, mark: str) -> None:
    page = open_at(show, trained())
    page.find("input[type=range]").focus()
    page.press(key)
    assert page.wait_for_request("budget")["bytes"] == trained()["machine"][mark]


def test_dragged_it_rests_on_round_amounts(show: Show) -> None:
    page = open_at(show, trained())
    box = page.find("input[type=range]").bounding_box()
    assert box is not None
    middle, machine = box["y"] + box["height"] / 2, trained()["machine"]
    at = place(machine, trained()["budget"]["budget_bytes"])
    page.page.mouse.move(box["x"] + 8 + at * (box["width"] - 16), middle)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + 0.65 * box["width"], middle, steps=3)
    page.page.mouse.up()
    shown = page.plot("memory").evaluate("host => host.plot.store.budget_bytes")
    assert shown % 2**15 == 0
    assert place(machine, shown) == pytest.approx(0.65, abs=0.04)
    page.page.wait_for_function("bytes => wire.requests.at(-1).bytes === bytes", arg=shown)


@pytest.mark.parametrize(("typed", "share"), [("50%", 0.5), ("25 %", 0.25), ("3MiB", None), ("4000000", None)])
def test_an_exact_amount_can_be_typed(show: Show, typed: str, share: float | None) -> None:
    page = open_at(show, trained())
    page.find(".sw-amount").click()
    page.find(".sw-amount-field").fill(typed)
    page.press("Enter")
    exact = {"3MiB": 3 * MIB, "4000000": 4_000_000}.get(typed)
    if share is not None:
        exact = int(share * trained()["machine"]["step_peak_bytes"])
    assert page.wait_for_request("budget")["bytes"] == exact
    assert page.find(".sw-amount").evaluate("button => button === document.activeElement")


@pytest.mark.parametrize("typed", ["", "much", "-3MiB", "0", "3 XB"])
def test_what_is_no_amount_is_said_to_be_none_and_nothing_is_asked(show: Show, typed: str) -> None:
    page = open_at(show, trained())
    page.find(".sw-amount").click()
    field = page.find(".sw-amount-field")
    field.fill(typed)
    page.press("Enter")
    assert field.get_attribute("aria-invalid") == "true"
    assert "8GiB" in page.text(".sw-amount-hint")
    page.press("Escape")
    assert not field.is_visible()
    assert page.requests("budget") == []


#: What is written under the slider and where: text, left, right, middle; how wide it is, and where its marks are.
TRACK = """async host => {
  const { plot } = host;
  const found = [];
  const g = plot.data.getContext('2d');
  g.fillText = (text, x, y) => found.push([text, x, x + g.measureText(text).width, y]);
  plot.draw();
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  delete g.fillText;
  plot.draw();
  const { least_bytes, step_peak_bytes, device_bytes } = plot.store.machine;
  const marks = { least: plot.x(least_bytes), 'step peak': plot.x(step_peak_bytes), device: plot.x(device_bytes) };
  return [found.sort((a, b) => a[3] - b[3] || a[1] - b[1]), plot.width, marks];
}"""


@pytest.mark.parametrize(("machine", "width"), combinations(["h100", "v100-16gb", "laptop"], [1440, 1000, 700]))
def test_the_slider_reaches_to_the_devices_memory_and_marks_it(show: Show, machine: str, width: int) -> None:
    session = Session(zoo.load(SMALL), machine=machine, budget="60%")
    MessageRecorder(session).planned()
    page = show(width=width)
    page.publish(session.messages())
    session.close()
    page.picture(f"device-{machine}-{width}")
    written, whole, _ = page.find(".sw-track-plot").evaluate(TRACK)
    assert {"step peak", "device"} <= {text.rpartition(" ")[0].rpartition(" ")[0] for text, *_ in written}
    assert all(left >= 0 and right <= whole + 0.5 for _, left, right, _ in written)
    assert all(one[2] < other[1] or one[3] + 12 <= other[3] for one, other in pairwise(written))
    found = {name: page.page.evaluate(f"() => document.querySelector('.plot').plot.store.machine.{name}")
             for name in ("device_bytes", "step_peak_bytes", "least_bytes")}  # fmt: skip
    slider = page.find("input[type=range]")
    assert place(machine_of(page), found["step_peak_bytes"]) - place(machine_of(page), found["least_bytes"]) > 0.3
    slider.focus()
    page.press("End")
    assert page.wait_for_request("budget")["bytes"] == found["device_bytes"]
    assert says(page.text(".sw-amount"), found["device_bytes"])
    assert "to spare" in answer(page)
    for _ in range(200):  # in large steps back to where budgets make a difference, and there in small ones
        page.page.keyboard.press("PageDown")
    assert page.plot("memory").evaluate("host => host.plot.store.budget_bytes") < found["step_peak_bytes"]


@pytest.mark.parametrize(("device", "width"), combinations([1.02, 1.2, 4600], [1440, 1000, 700, 356]))
def test_every_amount_under_the_slider_stands_at_its_own_mark(show: Show, width: int, device: float) -> None:
    recorded = trained()
    peak, near = recorded["machine"]["step_peak_bytes"], recorded["machine"]["near_bytes"]
    size = int(device * peak)
    page = show(width=width)
    page.publish(recorded.having("machine", device_bytes=size, slider_bytes=max(near, size)).messages)
    page.picture(f"marks-{device}-{width}")
    written, whole, marks = page.find(".sw-track-plot").evaluate(TRACK)
    names = {text.rpartition(" ")[0].rpartition(" ")[0]: (left, right) for text, left, right, _ in written}
    assert set(names) == set(marks)
    for name, (left, right) in names.items():
        middle = min(max(marks[name], (right - left) / 2), whole - (right - left) / 2)
        assert abs((left + right) / 2 - middle) < 1, name
    handle = page.find("input[type=range]").bounding_box()
    plot = page.find(".sw-track-plot").bounding_box()
    assert handle is not None
    assert plot is not None
    assert all(plot["y"] + y - 6 >= handle["y"] + handle["height"] for *_, y in written), "below the handle"
    assert max(y for *_, y in written) + 6 <= plot["height"]
    assert all(one[2] < other[1] or one[3] + 12 <= other[3] for one, other in pairwise(written))


def machine_of(page: Shown) -> dict[str, Any]:
    machine: dict[str, Any] = page.plot("memory").evaluate("host => ({ ...host.plot.store.machine, op_seconds: null })")
    return machine


def test_an_answer_to_an_earlier_budget_does_not_move_the_slider_back(show: Show) -> None:
    page = open_at(show, trained())
    answered = wired(message for message in trained().messages if message.kind == "budget")
    page.page.evaluate(f"([acts, messages]) => {{ ({AT_ONCE})(acts); wire.tell(messages, null); }}",
                       [[["key", "End"]], answered])  # fmt: skip
    assert page.plot("memory").evaluate("host => host.plot.store.budget_bytes") == trained()["machine"]["slider_bytes"]
    page.wait_for_request("budget")


def test_a_budget_that_is_too_small_names_the_op_and_offers_the_least(show: Show) -> None:
    recorded = planned(budget=1000)
    page = open_at(show, recorded)
    page.picture("impossible")
    machine, graph = recorded["machine"], recorded["graph"]
    assert "Cannot fit" in answer(page)
    assert f"needs at least {machine['least']}" in answer(page)
    module = graph["module_paths"][recorded.columns("graph")["op_module"][machine["least_op"]]]
    assert module in answer(page, 3)
    assert says(answer(page, 3), recorded.columns("graph")["op_working_set"][machine["least_op"]])
    assert "\N{EN DASH}" in answer(page, 2)
    for button in (".sw-do-search", ".sw-do-run"):
        assert page.find(button).get_attribute("aria-disabled") == "true"
        assert "least" in (page.find(button).get_attribute("aria-description") or "")
    page.find(".sw-do-run").click(force=True)
    assert page.requests("run") == []
    page.find(".sw-answer-box:nth-child(1) .sw-use").click()
    assert page.wait_for_request("budget")["bytes"] == machine["least_bytes"]


def test_without_the_header_a_panel_says_itself_that_the_budget_is_too_small(show: Show) -> None:
    page = show(["memory"])
    page.publish(planned(budget=1000).messages)
    assert says(page.text(".sw-banner-limit"), 1000)
    page.find(".sw-banner-limit button").click()
    assert page.wait_for_request("budget")["bytes"] == planned(budget=1000)["machine"]["least_bytes"]


def test_where_everything_fits_nothing_moves_and_to_run_is_the_thing_to_do(show: Show) -> None:
    recorded = planned(budget="100%")
    page = open_at(show, recorded)
    page.picture("fits")
    assert "Fits" in answer(page)
    assert "ideal" in answer(page, 2)
    assert page.find(".btn.primary").all_text_contents() == ["Run on this CPU"]
    assert "Nothing to search." in page.text(".sw-bottom")


def test_what_fits_says_how_much_is_left_of_the_budget_or_of_the_device(show: Show) -> None:
    recorded = planned(budget="100%")
    peak, device = recorded["machine"]["step_peak_bytes"], recorded["machine"]["device_bytes"]
    page = open_at(show, recorded)
    assert says(answer(page), device - peak)
    assert "more on the device" in answer(page)
    page.publish(planned(budget="150%").messages)
    assert says(answer(page), planned(budget="150%")["budget"]["budget_bytes"] - peak)
    assert "to spare" in answer(page)
    page.publish(recorded.having("machine", device_bytes=peak // 2).messages)
    assert "Does not fit this GPU" in answer(page)
    mib = 2**20
    assert f"needs {peak / mib:.1f} of {peak // 2 / mib:.1f} MiB" in answer(page)
    swap = planned(budget="75%").having("machine", device_bytes=peak // 2)
    page.publish(swap.messages)
    assert "Does not fit this GPU" in answer(page)
    page.publish(swap.having("machine", device_bytes=peak // 2, name="cpu").messages)
    assert "Does not fit this computer" in answer(page)


@pytest.mark.parametrize(("parameters", "text"), [(3_220_000_000, "3.22 B"), (937_000_000, "937 M"), (950, "950")])
def test_parameters_are_counted_in_millions_and_billions(show: Show, parameters: int, text: str) -> None:
    page = open_at(show, planned().having("graph", parameters=parameters))
    assert f"{text} parameters" in page.text(".sw-facts")


def test_without_a_valid_plan_it_says_so_and_offers_a_budget_that_has_one(show: Show) -> None:
    recorded = planned()
    budget, peak = recorded["budget"]["budget_bytes"], recorded["machine"]["step_peak_bytes"]
    sentence = "No valid plan is known for this budget: search, or raise it."
    none = recorded.having("budget", state="none", sentence=sentence)
    none = none.having("samples", points=[[peak, 1e-3]]).having("search", state="idle", history=[], baselines=[])
    page = open_at(show, none)
    page.picture("no-valid-plan")
    assert sentence in answer(page, 2)
    assert page.find(".sw-do-run").get_attribute("aria-disabled") == "true"
    page.find(".sw-answer-box:nth-child(2) .sw-use").click()
    assert page.wait_for_request("budget")["bytes"] == peak > budget


def test_cost_goes_to_the_longest_stall_and_why_to_the_peak(show: Show) -> None:
    recorded = planned()
    page = open_at(show, recorded)
    plan = recorded.columns("plan")
    worst = (plan["stall_stop"] - plan["stall_start"]).argmax()
    page.find("button.sw-face").nth(0).click()
    page.settle()
    low, high = page.plot("streams").evaluate("({ plot: { axis } }) => [axis.from, axis.to]")
    assert low <= plan["stall_start"][worst] <= plan["stall_stop"][worst] <= high
    page.find("button.sw-face").nth(1).click()
    page.settle()
    times, held = recorded.curve()
    low, high = page.plot("streams").evaluate("({ plot: { axis } }) => [axis.from, axis.to]")
    assert low <= times[held.sum(axis=1).argmax()] <= high


def test_another_machine_is_asked_for_by_name(show: Show) -> None:
    page = open_at(show, planned())
    names = [name for name, _, _ in planned()["machine"]["machines"]]
    assert page.find(".sw-machine").input_value() == planned()["machine"]["name"]
    page.find(".sw-machine").select_option(names[-1])
    assert page.wait_for_request("machine")["name"] == names[-1]


def test_while_the_budget_moves_every_panel_says_which_plan_it_still_shows(show: Show) -> None:
    page = open_at(show, planned())
    panels = ("memory", "holders", "streams")
    assert not [panel for panel in panels if "within" in page.text(f".sw-{panel} .sw-title")]
    page.page.evaluate(AT_ONCE, [["drag", place(planned()["machine"], planned()["machine"]["step_peak_bytes"] * 0.8)]])
    page.settle()
    for panel in panels:
        assert says(page.text(f".sw-{panel} .note").split("within")[1], planned()["plan"]["budget_bytes"]), panel


def test_while_another_machine_is_looked_at_no_number_of_the_one_before_stands_for_it(show: Show) -> None:
    recorded = planned()
    page = open_at(show, recorded)
    page.publish([recorded.having("budget", state="planning", doing="looking at H100", machine="H100")._of("budget")])
    for k in (1, 2):
        assert page.text(f".sw-answer-box:nth-child({k}) .sw-answer") == "\N{EN DASH}"
        assert page.text(f".sw-answer-box:nth-child({k}) .sw-sentence") == "looking at H100"
    for panel in ("memory", "holders", "streams"):
        assert "for V100" in page.text(f".sw-{panel} .sw-title")


def test_what_a_search_has_found_is_said_before_it_is_drawn(show: Show) -> None:
    recorded = planned()
    found = 0.9 * recorded["plan"]["step_seconds"]
    page = open_at(show, recorded)
    page.publish([recorded.having("search", state="running", history=[[1.0, 10, found, "calendar"]])._of("search")])
    cost = page.text(".sw-answer-box:nth-child(2) .sw-sentence")
    assert says(cost.partition("over ideal")[2], found)
    assert cost.endswith("found, drawn soon")
