"""The list of plans in the page: going back by click and keys, undo, notes in place, comparing, saving and loading."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from planner import zoo
from tests.widgets.browser.page import Shown
from tests.widgets.browser.recorded_messages import SMALL, RecordedMessages
from tests.widgets.browser.test_access import lock, violations
from tests.widgets.session.message_recorder import MessageRecorder
from widgets.session import Session

Show = Callable[..., Shown]
NOTE = "<img src=x onerror=document.title='run'> & more"


@cache
def listed() -> RecordedMessages:
    """Plans of two budgets and of two machines and of a search, one with a note, the first and the last compared."""
    session = Session(zoo.load(SMALL), machine="v100-16gb", budget="80%")
    for change in ("60%", "k80x8"):
        assert session.plan is not None
        if change.endswith("%"):
            session.budget = change
        else:
            session.machine = change
    assert session.plan is not None
    session.start_search(1.0, "swap")
    assert session.search is not None
    session.search.wait()
    last = session.plans[-1].number
    session.write_plan(1, "the first", NOTE)
    recorder = MessageRecorder(session)
    session.request({"do": "compare_plans", "first": 1, "second": last})
    recorder.wait("plan_difference")
    recorded = RecordedMessages(tuple(session.messages()))
    session.close()
    return recorded


def opened(show: Show, recorded: RecordedMessages, **options: object) -> Shown:
    page = show(**options)
    page.publish(recorded.messages)
    page.find("[role=tab]:text-is('Plans')").click()
    page.settle()
    return page


def widest(row: dict[str, object]) -> dict[str, object]:
    """A row with a long word for its method, and amounts of as many digits as there can be."""
    amounts = {"budget_bytes": 1023 * 2**30, "step_seconds": 0.0999, "bytes_moved": 1023 * 2**30}
    return row | amounts | {"number": 100, "machine": "laptop", "method": "swapadvisor", "shown": False, "best": False}


def go(number: int) -> str:
    """The button of a plan."""
    return f".sw-plans-tab tr[data-number='{number}'] .sw-plan-go"


def test_a_row_for_every_plan_with_the_shown_one_and_the_best_marked(show: Show) -> None:
    page, rows = opened(show, listed()), listed()["plans"]["rows"]
    assert page.find(".sw-plans-box tbody tr").count() == len(rows)
    pressed = page.find(".sw-plan-go[aria-pressed=true]").all_inner_texts()
    assert [int(text.split()[0]) for text in pressed] == [row["number"] for row in rows if row["shown"]]
    stars = page.find(".sw-plan-go:has(i:text-is('★'))").count()
    assert stars == sum(row["best"] for row in rows) == len({row["machine"] for row in rows})
    assert page.text(".sw-status") == f"{len(rows)} plans"
    assert page.find(".sw-plans-box td.method").all_inner_texts() == [row["method"] for row in rows]
    assert rows[-1]["method"].startswith("swap")


def test_a_note_is_shown_as_text_and_edited_in_place(show: Show) -> None:
    page = opened(show, listed())
    note = page.find("input[aria-label='Note of plan 1']")
    assert note.input_value() == NOTE
    assert page.find(".sw-plans-tab img").count() == 0
    note.fill("another")
    page.publish(listed().messages[-1:])
    assert note.input_value() == "another"
    page.press("Enter")
    asked = page.wait_for_request("write_plan")
    assert (asked["plan"], asked["note"]) == (1, "another")
    note.fill("not this")
    page.press("Escape")
    assert note.input_value() == "another"
    assert len(page.requests("write_plan")) == 1


def test_one_goes_back_to_a_plan_by_click_and_by_keys(show: Show) -> None:
    page = opened(show, listed())
    page.find(".sw-plans-tab tr[data-number='1'] td.machine").click()
    assert page.wait_for_request("show_plan")["plan"] == 1
    page.find(go(1)).focus()
    page.press("ArrowDown", "Enter")
    assert page.wait_for_request("show_plan", 2)["plan"] == 2
    page.press("End", "Home", "Enter")
    assert page.wait_for_request("show_plan", 3)["plan"] == 1


def test_undo_and_redo_are_keys_of_the_widget_alone(show: Show) -> None:
    page = opened(show, listed().having("plans", undo=True, redo=True))
    page.page.evaluate("""() => { window.reached = 0;
      document.addEventListener('keydown', event => { if (/z/i.test(event.key)) window.reached += 1; }); }""")
    page.plot("memory").focus()
    page.press("ControlOrMeta+z")
    page.wait_for_request("undo")
    page.press("ControlOrMeta+Shift+z")
    page.wait_for_request("redo")
    assert page.page.evaluate("() => window.reached") == 0
    page.find("input[aria-label='Note of plan 1']").focus()
    page.press("ControlOrMeta+z")  # undoes what was typed
    page.page.evaluate("() => { document.activeElement.blur(); document.body.focus(); }")
    page.press("ControlOrMeta+z")
    assert (len(page.requests("undo")), len(page.requests("redo"))) == (1, 1)


def test_two_ticked_plans_are_compared_and_their_differing_tensors_marked(show: Show) -> None:
    sent = listed()["plan_difference"]
    page = opened(show, listed())
    ticks = page.find(".sw-plans-tab td.compare input")
    assert [tick.is_checked() for tick in ticks.all()].count(True) == 2
    ticks.nth(1).check()
    asked = page.wait_for_request("compare_plans")
    assert (asked["first"], asked["second"]) == (sent["second"], 2)
    assert page.find(".sw-plan-tensor").count() == min(60, len(sent["tensors"])) > 0
    page.find(".sw-plan-difference button:text-is('Mark all')").click()
    assert f"{len(sent['tensors'])} tensor" in page.selected()


def test_the_list_is_saved_and_loaded(show: Show, tmp_path: Path) -> None:
    page = opened(show, listed())
    page.find(".sw-plans-save").click()
    page.wait_for_request("save_plans")
    path = tmp_path / "some.plans.json"
    path.write_text("{}")
    page.find(".sw-plans-tab input[type=file]").set_input_files(path)
    assert page.wait_for_request("load_plans")["text"] == "{}"
    page.publish(listed().having("plans", dropped=3).messages)
    assert "3 older plans without a name or a note were dropped." in page.text(".sw-plan-list")


def test_of_a_long_list_the_shown_plan_is_in_sight_and_the_notebook_stays(show: Show) -> None:
    few = listed()["plans"]["rows"]
    many = [{**few[0], "number": number, "name": f"plan {number}", "shown": number == 1} for number in range(1, 41)]
    page = opened(show, listed().having("plans", rows=many))
    page.page.set_viewport_size({"width": 1500, "height": 500})
    page.page.evaluate("() => scrollTo(0, 0)")
    page.settle()
    rows = [{**row, "shown": False} for row in many] + [{**few[0], "number": 41, "name": "plan 41", "shown": True}]
    for number in (41, 20, 1):
        rows = [{**row, "shown": row["number"] == number} for row in rows]
        page.publish(listed().having("plans", rows=rows).messages)
        page.settle()
        assert page.page.evaluate("() => scrollY") == 0
        box, head, row = (
            page.find(f".sw-plans-box{part}").evaluate("part => part.getBoundingClientRect().toJSON()")
            for part in ("", " thead", f" tr[data-number='{number}']")
        )
        assert head["bottom"] - 1 <= row["top"]
        assert row["bottom"] <= box["bottom"] + 1


@pytest.mark.parametrize("width", [500, 600, 800, 900, 1080, 1500])
def test_what_tells_plans_apart_is_whole_and_in_sight_at_every_width(show: Show, width: int) -> None:
    rows = listed()["plans"]["rows"]
    rows = [*rows, widest(rows[-1])]
    page = opened(show, listed().having("plans", rows=rows), width=width)
    for column, texts in (
        ("machine", [row["machine"] for row in rows]), ("method", [row["method"] for row in rows]),
    ):  # fmt: skip
        cells = page.find(f".sw-plans-box td.{column}")
        assert cells.all_inner_texts() == texts
        assert all(cell.is_visible() for cell in cells.all())
        assert cells.evaluate_all("cells => cells.every(cell => cell.scrollWidth <= cell.clientWidth)")
    over = page.find(".sw-plans-box").evaluate("box => box.scrollWidth - box.clientWidth")
    assert over <= 0


@pytest.mark.parametrize("width", [600, 1500])
def test_axe_has_nothing_to_object_to_and_no_row_is_cut(show: Show, width: int) -> None:
    page = opened(show, listed(), width=width)
    for theme in ("light", "dark"):
        lock(page, theme)
        page.picture(f"plans-{width}-{theme}")
        assert violations(page) == []
    over = page.find(".sw-plans-box").evaluate("box => box.scrollWidth - box.clientWidth")
    assert over <= 0
