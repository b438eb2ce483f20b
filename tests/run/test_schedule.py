"""The executor's events order exactly what the plan's slots say, no more and no less."""

from __future__ import annotations

from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import StowageError
from planner.graph import GraphBuilder
from planner.plan import PlanIndex, SwapIn, SwapOut, SwapPlan, Timeline
from planner.run.executor.stream_dependencies import SlotStep, schedule

Node = tuple[str, int]


def plan_of(n: int, outs: list[tuple[int, int]], ins: list[tuple[int, int]]) -> SwapPlan:
    empty = np.zeros((0, 2))
    return SwapPlan(
        graph="", machine="", method="", budget_bytes=0, host_budget_bytes=None, alignment=64, order=tuple(range(n)),
        workspaces=(), residencies=(), host_residencies=(),
        swap_outs=tuple(SwapOut(0, ready, release) for ready, release in outs),
        swap_ins=tuple(SwapIn(0, start, use) for start, use in ins),
        peak_bytes=0, host_bytes=0, predicted=Timeline(0.0, empty, empty, empty, np.zeros(0), np.zeros(0, np.int64)),
    )  # fmt: skip


def scheduled(plan: SwapPlan) -> tuple[SlotStep, ...]:
    return schedule(PlanIndex(GraphBuilder("nothing").build([]), plan))


def closure(nodes: list[Node], edges: set[tuple[Node, Node]]) -> set[tuple[Node, Node]]:
    number = {node: place for place, node in enumerate(nodes)}
    reach = np.zeros((len(nodes), len(nodes)), bool)
    for before, after in edges:
        reach[number[before], number[after]] = True
    for middle in range(len(nodes)):
        reach |= np.outer(reach[:, middle], reach[middle])
    return {(nodes[a], nodes[b]) for a, b in np.argwhere(reach)}


def queues(n: int, outs: int, ins: int) -> tuple[list[Node], set[tuple[Node, Node]]]:
    columns = [[("op", i) for i in range(n + 1)], [("out", i) for i in range(outs)], [("in", i) for i in range(ins)]]
    return [*chain(*columns)], {pair for column in columns for pair in pairwise(column)}


def by_the_rules(plan: SwapPlan) -> set[tuple[Node, Node]]:
    """The sentences of `planner.plan.swap_plan`, one by one; the op `n` is the end of the step."""
    n = len(plan.order)
    nodes, edges = queues(n, len(plan.swap_outs), len(plan.swap_ins))
    for j, out in enumerate(plan.swap_outs):
        edges |= {(("out", j), ("op", i)) for i in range(n + 1) if out.release <= i}
        if out.ready >= 0:
            edges.add((("op", out.ready), ("out", j)))
    for k, copy in enumerate(plan.swap_ins):
        edges |= {(("in", k), ("op", i)) for i in range(n + 1) if copy.use <= i}
        edges |= {(("op", i), ("in", k)) for i in range(copy.start)}
        edges |= {(("out", j), ("in", k)) for j, out in enumerate(plan.swap_outs) if out.release <= copy.start}
    return closure(nodes, edges)


def by_events(plan: SwapPlan) -> tuple[list[Node], set[tuple[Node, Node]], set[tuple[Node, Node]]]:
    """All that there is, what the queues order, and what events order."""
    nodes, queued = queues(len(plan.order), len(plan.swap_outs), len(plan.swap_ins))
    edges: set[tuple[Node, Node]] = set()
    steps = scheduled(plan)
    given_so_far: set[Node] = set()
    for slot, step in enumerate(steps):
        for kind, copies in (("out", step.outs), ("in", step.ins)):
            for copy in copies:
                if copy.after_op >= 0:
                    assert steps[copy.after_op].recorded
                    assert copy.after_op < slot
                    edges.add((("op", copy.after_op), (kind, copy.index)))
                if copy.after_out >= 0:
                    assert ("out", copy.after_out) in given_so_far
                    edges.add((("out", copy.after_out), (kind, copy.index)))
                given_so_far.add((kind, copy.index))
        for kind, index in (("out", step.await_out), ("in", step.await_in)):
            if index >= 0:
                assert (kind, index) in given_so_far
                edges.add(((kind, index), ("op", slot)))
    assert len(given_so_far) == len(plan.swap_outs) + len(plan.swap_ins)
    return nodes, queued, edges


@st.composite
def plans(draw: st.DrawFn) -> SwapPlan:
    n = draw(st.integers(1, 12))
    spans = st.tuples(st.integers(-1, n - 1), st.integers(0, n)).filter(lambda span: span[0] < span[1])
    outs = draw(st.lists(spans, max_size=6))
    ins = draw(
        st.lists(st.tuples(st.integers(0, n), st.integers(0, n)).map(lambda span: tuple(sorted(span))), max_size=6)
    )
    return plan_of(n, outs, ins)


@given(plans())
def test_events_and_queues_order_what_the_rules_order(plan: SwapPlan) -> None:
    ordered = by_the_rules(plan)
    cyclic = any(before == after for before, after in ordered)
    if cyclic:
        with pytest.raises(StowageError, match="wait for each other"):
            scheduled(plan)
        return
    # the end of the step waits for all copies by emptying the queues
    end = ("op", len(plan.order))
    nodes, queued, events = by_events(plan)
    assert {pair for pair in closure(nodes, queued | events) if pair[1] != end} == {
        pair for pair in ordered if pair[1] != end
    }


@given(plans())
def test_no_event_is_waited_for_that_others_imply(plan: SwapPlan) -> None:
    if any(before == after for before, after in by_the_rules(plan)):
        return
    nodes, queued, events = by_events(plan)
    for event in events:
        assert event not in closure(nodes, queued | (events - {event}))


def test_what_waits_for_nothing_records_and_awaits_nothing() -> None:
    steps = scheduled(plan_of(5, [], []))
    assert not any(step.recorded or step.outs or step.ins for step in steps)
    assert {step.await_out for step in steps} | {step.await_in for step in steps} == {-1}
