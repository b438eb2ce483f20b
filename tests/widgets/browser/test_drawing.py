"""Every panel draws, and its numbers are Python's."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.widgets.browser.page import EVERY_PANEL, Shown, wired
from tests.widgets.browser.recorded_messages import DEEP, RecordedMessages, planned, says, trained

Show = Callable[..., Shown]


def shown(show: Show, recorded: RecordedMessages, *args: object, **options: object) -> Shown:
    page = show(*args, **options)
    page.publish(recorded.messages)
    return page


def test_a_widget_asks_for_what_there_is_as_soon_as_it_is_shown(show: Show) -> None:
    assert [request["do"] for request in show().page.evaluate("() => wire.requests")] == ["ready"]


def test_the_header_names_the_step_and_answers_the_three_questions(show: Show) -> None:
    recorded = planned()
    page = shown(show, recorded)
    page.picture("planned")
    graph, machine, plan = recorded["graph"], recorded["machine"], recorded["plan"]
    assert page.text(".sw-header h2") == graph["name"]
    facts = page.text(".sw-facts")
    assert says(facts, len(recorded.columns("graph")["op_target"]))
    assert says(facts, machine["step_peak_bytes"])
    ops = page.find(".sw-fact:not(.sw-phrases)").first  # fewer than the calls counted while the step is captured
    assert "views and other calls of PyTorch are not counted" in (ops.get_attribute("title") or "")
    fit, cost, why = (page.text(f".sw-answer-box:nth-child({k})") for k in (1, 2, 3))
    assert "Needs a plan" in fit
    assert says(fit, machine["step_peak_bytes"] - recorded["budget"]["budget_bytes"])
    assert says(fit, plan["bytes_out"])
    assert says(cost, plan["step_seconds"])
    assert says(cost, plan["step_seconds"] / plan["ideal_seconds"] - 1)
    assert "unswapped peak" in why


def test_every_plot_has_a_name_and_a_sentence_and_something_in_it(show: Show) -> None:
    page = shown(show, trained())
    page.picture("trained")
    for tab in ("Search", "Run"):
        page.find(f"[role=tab]:text-is('{tab}')").click()
        page.settle()
        for host in page.find(".plot:not([aria-hidden])").all():
            if not host.is_visible():
                continue
            name = host.get_attribute("aria-label") or ""
            assert len(name) > 10
            described = host.get_attribute("aria-describedby")
            sentence = page.text(f"#{described}")
            assert sentence.endswith("."), (name, sentence)
            assert host.locator("canvas").first.evaluate(
                "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(v => v)"
            ), name
    said = page.page.evaluate("() => document.querySelector('main').textContent")
    assert not [odd for odd in ("NaN", "undefined", "Infinity", "null", "[object") if odd in said]


@pytest.mark.parametrize("panel", EVERY_PANEL)
def test_a_panel_draws_alone(show: Show, panel: str) -> None:
    page = shown(show, trained(), [panel])
    page.picture(f"alone-{panel}")
    assert page.find("section.sw-panel").count() == 1
    assert page.find("section.sw-panel").is_visible()


def test_the_graph_and_the_memory_and_the_streams_in_words(show: Show) -> None:
    recorded = planned()
    page = shown(show, recorded)
    graph, plan = recorded["graph"], recorded["plan"]
    words = page.summary("graph")
    assert says(words, len(recorded.columns("graph")["op_target"]))
    assert says(words, len(graph["module_paths"]))
    times, held = recorded.curve()
    words = page.summary("memory")
    assert words.startswith(plan["memory_summary"])
    assert says(words.removeprefix(plan["memory_summary"]), held.sum(axis=1).max())
    assert says(words, recorded["budget"]["budget_bytes"])
    assert says(words.split("arena")[-1], plan["peak_bytes"])
    assert plan["peak_bytes"] > held.sum(axis=1).max()
    page.publish(recorded.having("plan", peak_bytes=int(held.sum(axis=1).max())).messages)
    assert "arena" not in page.summary("memory").removeprefix(plan["memory_summary"])
    assert page.summary("streams") == plan["streams_summary"]
    assert len(times) > 100


def test_under_the_pointer_the_map_has_what_the_plan_has_there(show: Show) -> None:
    recorded = planned()
    page = shown(show, recorded)
    graph, plan = recorded.columns("graph"), recorded.columns("plan")
    size, name = graph["storage_bytes"], recorded["graph"]["storage_names"]
    step, full = recorded["plan"]["step_seconds"], recorded["budget"]["budget_bytes"] * 1.045
    area = page.plot("memory").evaluate("host => host.plot.area")
    hits = 0
    for share in (0.11, 0.37, 0.58, 0.83):
        for address in (0.02, 0.15, 0.31, 0.5, 0.64, 0.82, 0.93):
            page.move("memory", page.x_of("memory", share),
                      area["bottom"] - address * (area["bottom"] - area["top"]))  # fmt: skip
            there = [
                stay for stay, storage in enumerate(plan["residency_storage"])
                if plan["residency_start"][stay] < share * step < plan["residency_stop"][stay]
                and plan["residency_offset"][stay] < address * full < plan["residency_offset"][stay] + size[storage]
            ]  # fmt: skip
            tip = page.tip()
            if not there:
                continue  # a gap: what lies within a few pixels may be named
            storage = plan["residency_storage"][there[0]]
            assert tip[""] == name[storage]
            assert says(tip["size"], size[storage])
            assert says(tip["here"], plan["residency_start"][there[0]])
            assert says(tip["ops"], plan["residency_slot"][there[0]] + 1)
            hits += 1
    assert hits > 8


def test_by_kind_the_bytes_of_a_moment_are_those_of_the_stays(show: Show) -> None:
    recorded = planned()
    page = shown(show, recorded)
    page.find(".sw-memory button:text-is('By kind')").click()
    page.settle()
    page.picture("by-kind")
    times, held = recorded.curve()
    step = recorded["plan"]["step_seconds"]
    for share in (0.1, 0.5, 0.9):
        page.move("memory", page.x_of("memory", share), 80)
        cursor = page.plot("memory").evaluate("host => host.plot.store.cursor")
        assert cursor == pytest.approx(share * step, abs=step / 500)
        at = held[np.searchsorted(times, cursor, side="right") - 1]
        tip = page.tip()
        assert says(tip["total"], at.sum())
        assert says(tip["Parameter"], at[0])
        assert ("Gradient" in tip) == (at[4] > 0)


def test_a_lane_names_the_op_that_runs_and_the_copies_that_go_on(show: Show) -> None:
    recorded = planned()
    page = shown(show, recorded)
    graph, plan = recorded.columns("graph"), recorded.columns("plan")
    step = recorded["plan"]["step_seconds"]
    longest = int(np.argmax(plan["op_stop"] - plan["op_start"]))
    middle = (plan["op_start"][longest] + plan["op_stop"][longest]) / 2
    page.move("streams", page.x_of("streams", middle / step), page.lane(0))
    tip = page.tip()
    assert tip["op"] == recorded["graph"]["targets"][graph["op_target"][plan["order"][longest]]]
    assert says(tip["phase"].split(", op ")[1].split(" of ")[0], longest + 1)
    for lane, way in ((1, "out"), (2, "in")):
        copy = int(np.argmax(plan[f"{way}_stop"] - plan[f"{way}_start"]))
        middle = (plan[f"{way}_start"][copy] + plan[f"{way}_stop"][copy]) / 2
        page.move("streams", page.x_of("streams", middle / step), page.lane(lane))
        tip = page.tip()
        assert tip[""] == recorded["graph"]["storage_names"][plan[f"{way}_storage"][copy]]
        assert says(tip["size"], graph["storage_bytes"][plan[f"{way}_storage"][copy]])
    stalls = len(plan["stall_start"])
    assert stalls
    assert says(page.text(".sw-streams .note"), stalls)
    assert says(page.text(".sw-streams .note"), recorded["plan"]["stall_seconds"])


def test_who_holds_the_peak_holds_all_of_it(show: Show) -> None:
    recorded = planned()
    page = shown(show, recorded)
    _, held = recorded.curve()
    note = page.text(".sw-holders .note")
    assert says(note, held.sum(axis=1).max())
    bars = page.find(".sw-holders li .v").all_text_contents()
    assert len(bars) >= 2
    assert page.text(".sw-holders h3") == "Who holds the peak"
    page.find(".sw-holders select").select_option("line")
    page.publish([message for message in recorded.messages if message.kind == "plan"])
    assert says(page.text(".sw-holders .note"), held.sum(axis=1).max())
    names = page.find(".sw-holders li:not(.inside) .n > span").all_text_contents()
    assert all(re.fullmatch(r"(steps|transformer)\.py:\d+", name) for name in names)
    assert 2 <= len(names) == len({*names})
    page.find(".sw-holders select").select_option("kind")
    page.settle()
    assert "all parameters" in page.text(".sw-holders .holders")


SHAPE = "4 \N{MULTIPLICATION SIGN} 32 \N{MULTIPLICATION SIGN} 256 float32"
WEIGHT = "1000 \N{MULTIPLICATION SIGN} 64 float32"


def test_tensors_and_ops_say_their_shape_dtype_line_of_code_and_the_ops_before_and_after_them(show: Show) -> None:
    recorded = planned()
    page = shown(show, recorded)
    columns, said = recorded.columns("graph"), recorded["graph"]
    names = said["storage_names"]
    gelu = next(k for k, name in enumerate(names) if name.endswith("/gelu"))
    assert said["layouts"][columns["storage_layout"][gelu]] == SHAPE
    maker = next(op for op in range(len(columns["op_target"]))
                 if gelu in columns["op_touch"][slice(*columns["op_touch_start"][op : op + 2])])  # fmt: skip
    select = "(host, selection) => host.plot.store.set({ selection })"
    for chosen, fact in (("storage", gelu), ("op", maker)):
        page.plot("memory").evaluate(select, {"type": chosen, "id": fact})
        page.settle()
        assert SHAPE in page.selected()
        assert "used by" in page.selected()
        line = said["sources"][columns[f"{chosen}_source"][fact]]
        assert page.find(".sw-selection .copy").text_content() == line
        assert line.startswith("transformer.py:")
    weight = names.index("head.weight")
    page.plot("memory").evaluate(select, {"type": "storage", "id": weight})
    page.settle()
    assert WEIGHT in page.selected()
    line = said["sources"][columns["storage_source"][weight]]
    assert line in page.selected()
    copy_it = page.find(".sw-selection .copy")
    copy_it.focus()
    page.press("Enter")
    expect(copy_it).to_have_text("copied")
    page.find("input[type=search]").focus()
    page.press("ControlOrMeta+v")
    assert page.find("input[type=search]").input_value() == line
    page.settle()
    of_line = [op for op, source in enumerate(columns["op_source"]) if said["sources"][source] == line]
    assert page.plot("graph").evaluate("host => host.plot.search.opList") == of_line != []
    page.find("input[type=search]").fill("")
    plan, step = recorded.columns("plan"), recorded["plan"]["step_seconds"]
    copy = int(np.argmax(plan["out_stop"] - plan["out_start"]))
    middle = (plan["out_start"][copy] + plan["out_stop"][copy]) / 2
    page.move("streams", page.x_of("streams", middle / step), page.lane(1))
    assert page.tip()["shape"] == said["layouts"][columns["storage_layout"][plan["out_storage"][copy]]]
    slot = int(np.flatnonzero(plan["order"] == maker)[0])
    middle = (plan["op_start"][slot] + plan["op_stop"][slot]) / 2
    page.plot("streams").evaluate("({ plot: { axis } }, at) => axis.fit(...at)",
                                  [float(plan["op_start"][slot]), float(plan["op_stop"][slot])])  # fmt: skip
    page.settle()
    page.move("streams", page.x_of("streams", 0.5), page.lane(0))
    assert page.tip()["result"] == SHAPE
    assert page.tip()["source"].startswith("transformer.py:")
    assert page.tip()["inputs from"] == "blocks.0.expand addmm"
    assert page.tip()["used by"] == "2: blocks.0.contract addmm, blocks.0.contract mm"
    page.find(".sw-graph button:text-is('Schedule')").click()
    page.settle()
    page.move("graph", 150, 60)
    assert " float32" in page.tip()["result"]
    assert page.tip()["source"].startswith("transformer.py:")


#: Bytes, name and number of tensors of each group that holds some of the peak, as the rows are made from them.
HELD = """host => { const { store } = host.plot;
  return [...document.querySelectorAll('.sw-holders li button')].map(row => {
    row.click();
    const { label, storages } = store.selection;
    row.click();
    return [storages.reduce((sum, storage) => sum + store.graph.bytesOf(storage), 0), label, storages.length];
  }); }"""


@pytest.mark.parametrize(("spec", "budget"), [
    (DEEP, "100%"), (DEEP, "40%"), ("wresnet:depth=50,batch=4,image=64", "100%"),
    ("inception:batch=2,image=75", "60%"),
])  # fmt: skip
def test_no_row_of_what_holds_the_peak_hides_a_quarter_of_it_but_a_single_tensor(
    show: Show, spec: str, budget: str
) -> None:
    recorded = planned(spec, budget)
    page = shown(show, recorded)
    page.picture(f"holders-{spec.partition(':')[0]}-{budget.removesuffix('%')}")
    rows = page.plot("memory").evaluate(HELD)
    peak = recorded.curve()[1].sum(axis=1).max()
    assert len(rows) >= 4
    assert len({name for _, name, _ in rows}) == len(rows)
    assert [row for row in rows if row[0] > 0.25 * peak and row[2] > 1] == []
    assert sum(row[0] for row in rows) >= 0.5 * peak


def test_modules_hold_as_much_before_the_first_plan_as_by_one_that_swaps_nothing(show: Show) -> None:
    recorded = planned(DEEP, "100%")
    said = []
    for messages in ([one for one in recorded.messages if one.kind != "plan"], recorded.messages):
        page = show(("graph",))
        page.publish(messages)
        said.append(page.text("#" + (page.plot("graph").get_attribute("aria-describedby") or "")))
    assert "By memory at the peak:" in said[0]
    assert said[0] == said[1]


#: A notebook hides a cell for less than a frame, in which the page draws.
HIDDEN_FOR_A_MOMENT = """plan => new Promise(done => {
  const main = document.querySelector('main');
  main.style.display = 'none';
  wire.tell(plan, null);
  requestAnimationFrame(() => { main.style.display = ''; requestAnimationFrame(() => requestAnimationFrame(done)); });
})"""


def test_what_holds_the_peak_stays_listed_when_a_plan_comes_while_it_is_hidden(show: Show) -> None:
    page = shown(show, planned())
    rows = page.find(".sw-holders li").all_text_contents()
    page.page.evaluate(HIDDEN_FOR_A_MOMENT, wired(one for one in planned().messages if one.kind == "plan"))
    assert len(rows) > 5
    assert page.find(".sw-holders li").all_text_contents() == rows


def test_a_canvas_that_the_browser_had_dropped_is_drawn_again(show: Show) -> None:
    page = shown(show, planned())
    for panel in ("graph", "memory", "streams", "search-tab"):
        page.plot(panel).evaluate("""host => {
          for (const canvas of host.querySelectorAll('canvas')) canvas.getContext('2d').reset();
        }""")
        assert not page.inked(panel)
        back = "canvas => canvas.dispatchEvent(new Event('contextrestored'))"
        page.plot(panel).locator("canvas").first.evaluate(back)
        page.settle()
        assert page.inked(panel)


def test_by_ops_the_same_op_lies_in_its_place_in_the_order(show: Show) -> None:
    recorded = planned()
    page = shown(show, recorded)
    plan, ops = recorded.columns("plan"), len(recorded.columns("graph")["op_target"])
    page.find(".sw-memory button:text-is('Ops')").click()
    page.settle()
    slot = ops // 3
    page.move("streams", page.x_of("streams", (slot + 0.5) / ops), page.lane(0))
    hovered = page.plot("streams").evaluate("host => host.plot.store.hover")
    assert hovered == {"type": "op", "id": int(plan["order"][slot])}


def test_the_schedule_counts_the_ops_of_each_phase(show: Show) -> None:
    recorded = planned()
    page = shown(show, recorded)
    page.find(".sw-graph button:text-is('Schedule')").click()
    page.settle()
    page.picture("schedule")
    words = page.summary("graph")
    for phase in (0, 1, 2):
        assert says(words, int((recorded.columns("graph")["op_phase"] == phase).sum()))
