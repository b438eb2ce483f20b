"""The partition: what its tab asks for, pinned splits, blocks of tensors, and what the other panels show of it."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from planner import zoo
from tests.effort import combinations
from tests.widgets.browser.live import Live
from tests.widgets.browser.page import Shown
from tests.widgets.browser.recorded_messages import DEEP, RecordedMessages, says
from tests.widgets.browser.test_access import violations
from tests.widgets.session.message_recorder import MessageRecorder
from widgets.fallback import page_text
from widgets.messages import Message
from widgets.session import Session

Show = Callable[..., Shown]

TABLE = ".sw-splits-box table"


@cache
def searched() -> tuple[RecordedMessages, RecordedMessages]:
    session = Session(zoo.load(DEEP), machine="v100-16gb", budget="40%")
    recorder = MessageRecorder(session)
    recorder.planned()
    session.start_partition(4)
    partition = recorder.wait("partition", lambda partition: partition["state"] == "done")
    row = next(n for n, row in enumerate(partition["shown"]["rows"]) if row["name"] == "blocks.*.expand.weight")
    mark = recorder.mark()
    session.request({"do": "pin", "row": row, "level": 0, "value": "replicated"})
    recorder.wait("partition", lambda partition: partition["state"] == "done", mark)
    recorded = RecordedMessages(tuple(session.messages()))
    session.show_worker(2)
    recorder.wait("worker", lambda worker: worker["state"] == "shown")
    worker = RecordedMessages(tuple(each for each in session.messages() if each.kind.startswith("worker")))
    session.close()
    return recorded, worker


def split() -> RecordedMessages:
    """A model split over 4 workers, with one pin."""
    return searched()[0]


def worker() -> RecordedMessages:
    """What is said beside that once its third worker is shown."""
    return searched()[1]


@pytest.fixture
def page(show: Show) -> Shown:
    page = show()
    page.publish(split().messages)
    page.find("[role=tab]:text-is('Partition')").click()
    page.settle()
    return page


@pytest.fixture
def live(show: Show) -> Iterator[Live]:
    session = Session(zoo.load(DEEP), machine="v100-16gb", budget="40%")
    yield Live(show(), session)
    session.close()


def test_from_nothing_to_a_pin_and_back(live: Live) -> None:
    page = live.shown
    live.until("() => document.querySelector('.sw-do-partition:not([aria-disabled])') !== null")
    page.find("[role=tab]:text-is('Partition')").click()
    page.picture("partition-none")
    page.find("select[aria-label=Workers]").select_option("4")
    assert page.wait_for_request("partition")["workers"] == 4
    live.until("() => document.querySelectorAll('.sw-found li').length === 1")
    live.until("() => document.querySelector('.sw-do-partition').textContent !== 'Cancel'")
    choice = page.find("select[aria-label='blocks.*.expand.weight, level 1']")
    choice.focus()
    choice.select_option("replicated")
    assert page.wait_for_request("pin")["value"] == "replicated"
    live.until("() => document.querySelectorAll('.sw-found li').length === 2")
    live.until("() => document.querySelector('select.pinned')?.value === 'replicated'")
    assert choice.evaluate("choice => choice === document.activeElement")  # in the table that replaced the one before
    page.find(".sw-found button").first.click()
    live.until("() => document.querySelector('select.pinned') === null")
    assert choice.get_attribute("aria-description") == "copies in the one before"
    assert "differs" in (choice.get_attribute("class") or "")
    assert "% bytes" in page.find(".sw-found button").nth(1).inner_text()
    page.find(".sw-worker:text-is('worker 1')").click()
    live.until_text(".sw-memory h3", "Memory")
    live.until("() => !document.querySelector('.sw-header .sw-worker-choice').hidden")
    assert "collectives take" in page.summary("streams")
    page.find(".sw-header select[aria-label='Worker that is shown']").select_option("3")
    live.until("() => document.querySelector('.sw-worker[aria-pressed=true]')?.textContent === 'worker 3'")
    page.plot("memory").focus()
    page.press("Escape")
    page.wait_for_request("show_worker", 3)
    live.until("() => document.querySelector('.sw-header .sw-worker-choice').hidden")
    assert "collective" not in page.summary("streams")
    assert page.errors == []


def test_escape_cancels_it_and_the_button_does(page: Shown) -> None:
    page.publish(split().having("partition", state="running", doing="trying all levels", share=0.25).messages)
    assert page.text(".sw-do-partition") == "Cancel"
    assert page.text(".sw-status") == "trying all levels"
    page.plot("memory").focus()
    page.press("Escape")
    page.wait_for_request("cancel_partition")
    page.find(".sw-do-partition").click()
    page.wait_for_request("cancel_partition", 2)
    assert page.text(".sw-do-partition") == "Cancelling"


def test_it_says_what_the_partition_is(page: Shown) -> None:
    shown = split()["partition"]["shown"]
    assert says(page.text(".sw-status"), shown["bytes"])
    rows = page.find(f"{TABLE} tbody tr:not(.rest)")
    assert rows.count() == len(shown["rows"])
    first = rows.first.inner_text()
    assert shown["rows"][0]["name"] in first
    assert says(first, shown["rows"][0]["bytes"] / shown["rows"][0]["tensors"])
    values = page.find(".sw-amounts .sw-bar-value").all_inner_texts()
    assert len(values) == 2 + 4
    for value, exact in zip(values, [*shown["bytes_per_level"], *(peak for _, peak, _ in shown["peaks"])], strict=True):
        assert says(value, exact)
    assert "pins add" in page.find(".sw-partition-tab").inner_text()


def test_what_is_selected_anywhere_shows_its_blocks(page: Shown) -> None:
    page.click("memory", *page.held(0.5))
    chosen = page.wait_for_request("blocks")["storage"]
    assert split()["graph"]["storage_names"][chosen] in page.selected()


def test_a_row_selects_its_tensors_in_all_panels(page: Shown) -> None:
    before = page.pixels("memory")
    name = page.find(".sw-split-name").first
    name.click()
    page.settle()
    assert name.get_attribute("aria-pressed") == "true"
    assert page.pixels("memory") != before
    assert page.wait_for_request("blocks")["storage"] == split()["partition"]["shown"]["rows"][0]["storages"][0]
    name.click()
    assert name.get_attribute("aria-pressed") == "false"


def test_a_block_says_whose_it_is_and_a_worker_marks_its_blocks(page: Shown) -> None:
    blocks = split()["blocks"]
    first, last, _, _, workers = blocks["blocks"][0]
    plot = page.find(".sw-partition-tab .plot")
    at = plot.evaluate("host => { const { x, y, w, h } = host.plot.rectangles[0]; return [x + w / 2, y + h / 2]; }")
    plot.hover(position={"x": at[0], "y": at[1]})
    page.settle()
    tip = page.tip()
    assert tip[""] == blocks["name"]
    assert str(workers[0]) in tip["on"]
    if blocks["axes"][0] >= 0:
        assert tip[f"dim {blocks['axes'][0]}"] == f"{first:,} to {last - 1:,}"
    page.leave()
    over = "host => host.plot.overlay.toDataURL()"
    before = plot.evaluate(over)
    page.find(".sw-amounts .sw-bar:has-text('worker 2')").hover()
    page.settle()
    assert plot.evaluate(over) != before


def test_the_graph_is_coloured_by_it(page: Shown) -> None:
    before = page.pixels("graph")
    page.find("select[aria-label='Colour by']").select_option("partition")
    page.settle()
    assert page.pixels("graph") != before
    assert "how tensors are split" in page.summary("graph")
    tokens = next(row for row in split()["partition"]["shown"]["rows"] if row["name"] == "tokens.weight")
    ways = tokens["ways"][0] if len(set(tokens["ways"])) == 1 else " / ".join(tokens["ways"])
    assert ways in page.find(".sw-graph [role=treeitem]:has-text('tokens')").first.inner_text()
    page.find(".sw-graph button:text-is('Schedule')").click()
    page.settle()
    assert page.errors == []


def test_its_legend_says_what_the_colours_mean(page: Shown) -> None:
    legend = page.find(".sw-graph-legend")
    assert not legend.is_visible()
    page.find("select[aria-label='Colour by']").select_option("partition")
    shown = split()["partition"]["shown"]
    ways = {row["ways"][0] if len(set(row["ways"])) == 1 else " / ".join(row["ways"]) for row in shown["rows"]}
    said = legend.locator("span:has(i)").all_inner_texts()
    assert set(said) <= ways
    assert len(said) == min(4, len(ways))
    assert len({entry.evaluate("i => i.style.background") for entry in legend.locator("i").all()}) == len(said)
    assert ("other way" in legend.inner_text()) == (len(ways) > 4)


def test_a_worker_is_drawn_in_all_panels_and_the_whole_step_again(page: Shown) -> None:
    before = [
        page.pixels("memory"),
        page.pixels("streams"),
        page.text(".sw-header .sw-answers"),
        page.text(".sw-facts"),
    ]
    page.find(".sw-worker:text-is('worker 2')").click()
    assert page.wait_for_request("show_worker")["worker"] == 2
    page.publish(worker().messages)
    graph, plan = worker().columns("worker_graph"), worker()["worker_plan"]
    assert f"{len(graph['op_target']):,} ops" in page.text(".sw-facts")
    assert page.find(".sw-header .sw-worker-choice option:checked").inner_text() == "worker 2 (of 0 to 3)"
    titles = "h => getComputedStyle(h, '::after').content.replaceAll('\"', '')"
    for panel in ("memory", "streams", "graph", "holders"):
        assert "worker 2 (of 0 to 3)" in page.find(f".sw-{panel} > .sw-title h3").evaluate(titles)
    assert says(page.text(".sw-header .sw-answers"), plan["step_seconds"])
    assert plan["streams_summary"] in page.summary("streams")
    assert len(worker().columns("worker_plan")["collective_op"]) > 0
    pressed = page.find(".sw-worker[aria-pressed=true]")
    assert pressed.inner_text() == "worker 2"
    pressed.focus()
    page.press("ArrowDown", "ArrowUp", "ArrowUp", "Enter")  # one tab stop, arrows inside
    assert page.wait_for_request("show_worker", 2)["worker"] == 1
    assert page.find(".sw-worker[tabindex='0']").count() == 1
    assert "One worker cannot be run alone" in (page.find(".sw-do-run").get_attribute("aria-description") or "")
    page.plot("memory").evaluate("host => host.plot.store.ask({ do: 'budget', bytes: 5000 })")
    assert page.wait_for_request("in_worker")["request"] == {"do": "budget", "bytes": 5000}
    page.find(".sw-header button:text-is('Whole step')").click()
    assert page.wait_for_request("show_worker", 3)["worker"] is None
    page.leave()
    assert [
        page.pixels("memory"),
        page.pixels("streams"),
        page.text(".sw-header .sw-answers"),
        page.text(".sw-facts"),
    ] == before


def test_where_a_worker_communicates_has_a_lane(page: Shown) -> None:
    assert page.plot("streams").evaluate("host => host.plot.lanes.shown.length") == 3
    page.publish(worker().messages)
    assert page.plot("streams").evaluate("host => host.plot.lanes.shown.length") == 4
    columns = worker().columns("worker_plan")
    middle = float(columns["collective_start"][3] + columns["collective_stop"][3]) / 2
    for _ in range(12):  # until it is wide enough to point at
        page.plot("streams").evaluate("(host, at) => host.plot.axis.zoom(0.5, host.plot.axis.x(at))", middle)
    x = page.plot("streams").evaluate("(host, at) => host.plot.axis.x(at)", middle)
    page.move("streams", x, page.lane(3))
    target = worker()["worker_graph"]["targets"][
        worker().columns("worker_graph")["op_target"][columns["collective_op"][3]]
    ]
    assert page.tip()["op"] == target
    assert target.startswith("stowage.")


def test_too_little_memory_offers_the_least_that_would_do_and_what_was_stopped_goes_on(page: Shown) -> None:
    page.find("select[aria-label='Memory of a worker']").select_option("budget")
    assert page.wait_for_request("partition")["memory"] == "budget"
    refused = {"state": "failed", "sentence": "It is too little.", "limit_bytes": 2**20, "least_bytes": 2**21}
    page.publish(split().having("partition", **refused).messages)
    assert page.find("select[aria-label='Memory of a worker'] option:checked").inner_text() == "in 1.00 MiB"
    page.find(".sw-stopped button:text-is('Allow 2.00 MiB')").click()
    assert page.wait_for_request("partition", 2)["memory"] == 2**21
    page.publish(split().having("partition", state="cancelled", resumable=True).messages)
    assert page.text(".sw-do-partition") == "Resume"
    page.find(".sw-do-partition").click()
    page.wait_for_request("resume_partition")


def test_what_is_selected_stays_selected_in_a_worker(page: Shown) -> None:
    name = page.find(".sw-split-name:has(bdi:text-is('tokens.weight'))")
    name.click()
    assert "tokens.weight" in page.selected()
    page.publish(worker().messages)
    assert "tokens.weight" in page.selected()
    assert name.get_attribute("aria-pressed") == "true"
    names = worker()["worker_graph"]["storage_names"]
    other = names.index("positions.weight")
    page.plot("memory").evaluate("(host, id) => host.plot.store.set({ selection: { type: 'storage', id } })", other)
    asked = page.wait_for_request("blocks", 2)["storage"]
    assert split()["graph"]["storage_names"][asked] == "positions.weight"
    page.press("Escape", "Escape")
    assert page.find(".sw-header .sw-worker-choice").is_hidden()


def test_a_worker_that_is_planned_shows_how_far_that_is_and_can_be_cancelled(page: Shown) -> None:
    making = Message({"kind": "worker", "state": "making", "worker": 1, "workers": 4, "doing": "planning it",
                      "share": 0.5, "sentence": "", "columns": [["storages", "i4", 0]]}, (b"",))  # fmt: skip
    page.publish([making])
    assert page.text(".sw-status") == "worker 1 (of 0 to 3): planning it"
    assert page.find(".sw-progress").evaluate("bar => bar.style.width") == "50%"
    page.find(".sw-do-partition").click()
    page.wait_for_request("cancel_worker")
    page.publish([Message({**making.content, "state": "failed", "sentence": "It has no program."}, (b"",))])
    assert page.text(".sw-splits .sw-stopped") == "It has no program."


@pytest.mark.parametrize(("theme", "width"), combinations(["light", "dark"], [1240, 700]))
def test_it_is_accessible_and_nothing_scrolls_sideways(show: Show, theme: str, width: int) -> None:
    page = show(theme=theme, width=width)
    page.publish(split().messages)
    page.find("[role=tab]:text-is('Partition')").click()
    page.settle()
    page.picture(f"partition-{theme}-{width}")
    assert violations(page) == []
    page.find("select[aria-label='Colour by']").select_option("partition")
    page.publish(worker().messages)
    page.picture(f"worker-{theme}-{width}")
    assert width == 700 or violations(page) == []
    wide = page.page.evaluate("() => document.documentElement.scrollWidth")
    assert wide <= width


def test_a_saved_page_of_a_worker_has_the_whole_step_too(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "saved.html"
    path.write_text(page_text((*split().messages, *worker().messages)), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    facts = page.locator(".sw-facts")
    ops = f"{len(worker().columns('worker_graph')['op_target']):,} ops"
    assert ops in facts.inner_text()
    page.locator(".sw-header button:text-is('Whole step')").click()
    assert f"{len(split().columns('graph')['op_target']):,} ops" in facts.inner_text()
    page.locator("[role=tab]:text-is('Partition')").click()
    page.locator(".sw-worker:text-is('worker 2')").click()
    assert ops in facts.inner_text()
    assert page.locator(".sw-worker:text-is('worker 1')").is_disabled()
    page.close()


def test_a_saved_page_shows_it_and_offers_nothing(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "saved.html"
    path.write_text(page_text(split().messages), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.locator("[role=tab]:text-is('Partition')").click()
    assert page.locator(f"{TABLE} tbody tr:not(.rest)").count() == len(split()["partition"]["shown"]["rows"])
    controls = page.locator(".sw-partition-tab").locator("select, .sw-found button, .sw-amounts .btn")
    assert {control.is_disabled() for control in controls.all()} == {True}
    assert page.locator(".sw-do-partition").get_attribute("aria-disabled") == "true"
    page.close()
