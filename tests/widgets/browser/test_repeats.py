"""A plan in which ops run again, in a page: every run is its own, and an op is where it runs first."""

from collections.abc import Callable
from functools import cache

import numpy as np

from planner.graph import Graph
from planner.plan import PlanIndex, Residency, SwapPlan
from tests.plan.test_recomputed import M, counted, counting
from tests.widgets.browser.page import Shown
from tests.widgets.browser.recorded_messages import RecordedMessages, says
from tests.widgets.session.message_recorder import MessageRecorder
from tests.widgets.steps import again_plan, again_step
from widgets.fallback.header_summary import get_answers
from widgets.session import Session

Show = Callable[..., Shown]


@cache
def recorded() -> RecordedMessages:
    return recorded_of(again_step(), again_plan())


def recorded_of(graph: Graph, plan: SwapPlan) -> RecordedMessages:
    session = Session((graph, plan))
    recorder = MessageRecorder(session)
    recorder.wait("plan")
    messages = RecordedMessages(tuple(session.messages()))
    session.close()
    return messages


def test_runs_are_told_apart_and_what_is_recomputed_says_why(show: Show) -> None:
    page = show(height=1300)
    page.publish(recorded().messages)
    graph, plan = again_step(), again_plan()
    index, sent, seconds = PlanIndex(graph, plan), recorded().columns("plan"), recorded()["plan"]["step_seconds"]
    _, cost, _ = get_answers({message.kind: message for message in recorded().messages})
    assert recorded()["plan"]["again"] in cost.rest == page.text(".sw-answer-box:nth-child(2) .sw-sentence")
    assert "run again" in page.text(".sw-streams .legend")
    assert "recomputed" in page.text(".sw-memory .legend")
    page.picture("repeats")

    slot = max(index.repeats, key=lambda slot: sent["op_stop"][slot] - sent["op_start"][slot])
    op = plan.order[slot]
    first, middle = plan.order.index(op), (sent["op_start"][slot] + sent["op_stop"][slot]) / 2
    page.move("streams", page.x_of("streams", middle / seconds), page.lane(0))
    tip = page.tip()
    assert tip["phase"] == f"forward, run again, op {slot + 1} of {len(plan.order)}"
    assert says(tip["runs first"], sent["op_start"][first])
    assert says(tip["takes"], sent["op_stop"][slot] - sent["op_start"][slot])
    page.picture("repeats-pointed")

    page.click("streams", page.x_of("streams", middle / seconds), page.lane(0))
    assert f"op {first + 1} of {len(plan.order)}" in page.selected()
    assert says(page.selected().partition("runs again at")[2], sent["op_start"][slot])

    firsts = list(index.first_runs)
    page.plot("streams").focus()
    chosen = "host => host.plot.store.selection.id"
    for press, by in (("ArrowRight", 1), ("ArrowLeft", -1)):
        at = firsts.index(op)
        page.plot("streams").evaluate("(host, id) => host.plot.store.set({ selection: { type: 'op', id } })", op)
        page.press(press)
        assert page.plot("streams").evaluate(chosen) == firsts[at + by]
    before = next(slot for slot in range(index.repeats[0] - 1, -1, -1) if slot not in index.repeats)
    page.plot("streams").evaluate(
        "(host, id) => host.plot.store.set({ selection: { type: 'op', id } })", plan.order[before]
    )
    page.press("ArrowRight")
    assert page.plot("streams").evaluate(chosen) == firsts[firsts.index(plan.order[before]) + 1]

    row = int(np.flatnonzero(sent["residency_recomputed"])[0])
    storage, maker = int(sent["residency_storage"][row]), plan.order[sent["residency_slot"][row]]
    page.plot("streams").evaluate("(host, id) => host.plot.store.set({ selection: { type: 'storage', id } })", storage)
    page.settle()
    page.picture("repeats-selected")
    target = graph.ops[maker].target.removeprefix("aten.").removesuffix(".default")
    assert f"until {target} runs again for" in page.selected()
    assert "recomputed once" in page.selected()


def test_an_op_that_runs_again_has_one_row_in_the_schedule(show: Show) -> None:
    page = show(("graph",))
    page.publish(recorded().messages)
    page.find(".sw-graph button:has-text('Schedule')").click()
    page.settle()
    graph = recorded().columns("graph")
    rows = page.plot("graph").evaluate("({ plot }) => Array.from(plot.view.rows.ops)")
    assert sorted(rows) == np.flatnonzero(graph["op_phase"] == 0).tolist()
    assert "recomputed." in page.summary("graph")
    page.picture("repeats-schedule")


def test_what_an_op_leaves_alone_when_it_runs_again_is_no_use(show: Show) -> None:
    page = show(("memory",))
    page.publish(recorded_of(counting(), counted(Residency(M, 0, 4, 320))).messages)
    uses = page.plot("memory").evaluate("({ plot }, id) => plot.store.plan.usesOf(id)", M)
    assert uses == [0, 3], "the op in slot 2 counts only when it runs first"
    read = counting().reads[0][0]
    assert page.plot("memory").evaluate("({ plot }, id) => plot.store.plan.usesOf(id)", read) == [0, 2]
