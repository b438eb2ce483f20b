"""Everyone can use it: the rules of axe-core hold in light and dark in every state, and colours follow the notebook."""

from collections.abc import Callable, Iterable

import pytest
from axe_playwright_python.base import AXE_SCRIPT

from tests.widgets.browser.page import EVERY_PANEL, Shown
from tests.widgets.browser.recorded_messages import RecordedMessages, planned, trained
from widgets.messages.message import Message
from widgets.messages.state_messages import compare_message, loading_message, notice_message, refused_message

Show = Callable[..., Shown]

OTHER = {
    "budget_bytes": 5 * 2**20, "step_seconds": 0.03, "stall_seconds": 0.01, "bytes_out": 2**20, "moved": 4,
    "percent_of_ideal": 60.0, "valid": True, "recompute_seconds": 0.0,
}  # fmt: skip
SENTENCE = "The run stopped in step 2: there is no such word; the model holds what step 1 left."


def waiting() -> Iterable[Message]:
    return []


def loading() -> Iterable[Message]:
    return [loading_message("gpt", "capturing the step", 0.4, 1234, 2.3)]


def refused() -> Iterable[Message]:
    return [refused_message("This step cannot be captured", "It branches on data: use torch.where.")]


def recorded(make: Callable[[], RecordedMessages]) -> Callable[[], Iterable[Message]]:
    return lambda: make().messages


def nothing_known() -> RecordedMessages:
    none = planned().having("budget", state="none", sentence="No valid plan is known: raise the budget.")
    return none.having("samples", points=[[planned()["machine"]["step_peak_bytes"], 1e-3]])


def searching() -> RecordedMessages:
    return trained().having("search", state="running", doing="improving the best plans", limit_seconds=30, rate=900.0)


def search_failed() -> RecordedMessages:
    return trained().having("search", state="failed", sentence="MemoryError: none is left.", history=[])


def compared() -> RecordedMessages:
    return trained().but(compare_message("5.00 MiB", OTHER), notice_message("Saved step.plan.json."))


def run_failed() -> RecordedMessages:
    one = trained()["run"]
    return trained().having("run", state="failed", step=1, step_seconds=one["step_seconds"][:1], sentence=SENTENCE)


def run_failed_at_once() -> RecordedMessages:
    empty = Message({**trained()["run"], "columns": []})
    return trained().but(empty).having("run", state="failed", step=0, step_seconds=[], sentence=SENTENCE)


def run_differs() -> RecordedMessages:
    return trained().having("run", mismatched=3, sentence="3 tensors differ.")


def running() -> RecordedMessages:
    return trained().having("run", state="running", steps=3, share=0.6)


STATES: dict[str, Callable[[], Iterable[Message]]] = {
    "waiting": waiting,
    "loading": loading,
    "refused": refused,
    "planned": recorded(planned),
    "trained": recorded(trained),
    "fits": recorded(lambda: planned(budget="100%")),
    "impossible": recorded(lambda: planned(budget=1000)),
    "no valid plan": recorded(nothing_known),
    "searching": recorded(searching),
    "search failed": recorded(search_failed),
    "compared": recorded(compared),
    "run failed": recorded(run_failed),
    "run failed at once": recorded(run_failed_at_once),
    "run differs": recorded(run_differs),
    "running": recorded(running),
}


def violations(page: Shown) -> list[str]:
    """What axe-core objects to, element by element."""
    if page.page.evaluate("() => !window.axe"):
        page.page.evaluate(AXE_SCRIPT)
    # only these are told: of the rules that hold, each has a list of the elements that it was held against
    found = page.page.evaluate("async () => (await axe.run({ resultTypes: ['violations'] })).violations")
    return [f"{one['id']}: {node['html'][:160]} {node['failureSummary']}" for one in found for node in one["nodes"]]


def lock(page: Shown, theme: str) -> None:
    """Do what a notebook does when its theme is changed."""
    page.page.evaluate("light => { document.body.dataset.jpThemeLight = light; }", str(theme == "light").lower())
    page.settle()


@pytest.mark.parametrize("state", STATES)
def test_axe_has_nothing_to_object_to(show: Show, state: str) -> None:
    page = show()
    page.publish(STATES[state]())
    for theme in ("light", "dark"):
        lock(page, theme)
        page.picture(f"axe-{state.replace(' ', '-')}-{theme}")
        assert violations(page) == [], theme
        if "run" in state:
            page.find("[role=tab]:text-is('Run')").click()
            page.settle()
            page.picture(f"axe-{state.replace(' ', '-')}-run-{theme}")
            assert violations(page) == [], theme


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nor_when_something_is_selected_searched_for_open_or_away(show: Show, theme: str) -> None:
    page = show(theme=theme)
    page.publish(trained().messages)
    page.click("memory", *page.held(0.5))
    page.find("input[type=search]").fill("layers")
    page.find(".sw-memory button:text-is('By kind')").click()
    page.move("memory", page.x_of("memory", 0.4), 150)  # by kind there is a tip everywhere, and by address gaps
    assert page.tip()
    page.picture(f"axe-selected-{theme}")
    assert violations(page) == []
    page.find(".sw-graph button:text-is('Schedule')").click()
    page.find(".sw-amount").click()
    page.find(".sw-amount-field").fill("much")
    page.press("Enter")
    assert violations(page) == []
    page.press("Escape")
    page.find(".sw-do-export").click()
    assert violations(page) == []
    page.press("Escape")
    page.find(".sw-keys").click()
    assert violations(page) == []
    page.find(".sw-help button").click()
    page.page.evaluate("() => { wire.deaf = true; }")
    page.find(".sw-do-compare").click()
    page.page.wait_for_selector(".sw-banner:visible")
    assert violations(page) == []


@pytest.mark.parametrize("panels", [EVERY_PANEL, ("streams", "selection")])
def test_nor_when_a_span_is_summed_up(show: Show, panels: tuple[str, ...]) -> None:
    page = show(panels)
    page.publish(planned().messages)
    page.plot("streams").focus()
    page.press("ArrowRight", *["Shift+ArrowRight"] * 4)
    assert page.find(".sw-span").is_visible()
    for theme in ("light", "dark"):
        lock(page, theme)
        assert violations(page) == [], theme


@pytest.mark.parametrize("width", [700, 1000])
def test_nor_in_a_narrow_page(show: Show, width: int) -> None:
    page = show(width=width)
    page.publish(trained().messages)
    assert violations(page) == []


@pytest.mark.parametrize("panel", EVERY_PANEL)
def test_nor_in_a_panel_by_itself(show: Show, panel: str) -> None:
    page = show([panel])
    for messages in (waiting(), trained().messages, planned(budget=1000).messages):
        page.publish(messages)
        assert violations(page) == []


def test_two_widgets_in_a_page_have_no_names_twice(show: Show) -> None:
    page = show(widgets=[EVERY_PANEL, EVERY_PANEL])
    page.publish(planned().messages)
    assert violations(page) == []
    names = page.page.evaluate("() => [...document.querySelectorAll('[id]')].map(element => element.id)")
    assert len(names) == len(set(names))


def test_the_theme_of_the_notebook_is_followed_while_it_is_shown(show: Show) -> None:
    page = show()
    page.publish(planned().messages)
    feasibility = "() => getComputedStyle(document.querySelector('.sw-memory')).backgroundColor"
    drawn = {panel: page.pixels(panel) for panel in ("graph", "memory", "streams")}
    light = page.page.evaluate(feasibility)
    lock(page, "dark")
    page.picture("turned-dark")
    assert page.page.evaluate(feasibility) != light
    assert [panel for panel, before in drawn.items() if page.pixels(panel) == before] == []
    lock(page, "light")
    assert page.page.evaluate(feasibility) == light
    assert {panel: page.pixels(panel) for panel in drawn} == drawn


@pytest.mark.parametrize(
    ("theme", "activation", "parameter"),
    [("light", (0x2F, 0x8F, 0x7A), (0x2B, 0x5F, 0xA6)), ("dark", (0x3A, 0xA7, 0x8F), (0x4A, 0x86, 0xD6))],
)
def test_kinds_have_the_colours_of_the_palette(
    show: Show, theme: str, activation: tuple[int, ...], parameter: tuple[int, ...]
) -> None:
    page = show(theme=theme)
    page.publish(planned().messages)
    count = """(canvas, colours) => { const { data } = canvas.getContext('2d')
        .getImageData(0, 0, canvas.width, canvas.height);
      return colours.map(([r, g, b]) => { let n = 0;
        for (let k = 0; k < data.length; k += 4) n += data[k] === r && data[k + 1] === g && data[k + 2] === b;
        return n; }); }"""
    canvas = page.plot("memory").locator("canvas").first
    assert min(canvas.evaluate(count, [list(activation), list(parameter)])) > 100


def test_who_wants_less_motion_gets_none(show: Show) -> None:
    page = show()
    page.page.emulate_media(reduced_motion="reduce")
    page.publish(trained().messages)
    moving = """() => [...document.querySelectorAll('.sw *')].filter(element => {
      const { transitionDuration, animationName, animationDuration } = getComputedStyle(element);
      return parseFloat(transitionDuration) > 0.01
        || (animationName !== 'none' && parseFloat(animationDuration) > 0.01); })
      .map(element => element.className)"""
    assert page.page.evaluate(moving) == []
