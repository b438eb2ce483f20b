"""The executor's events order what accesses to memory need, as the plan's slots have it: no more and no less."""

from __future__ import annotations

from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import StowageError
from planner.graph import GraphBuilder
from planner.plan import PlanIndex, SwapIn, SwapOut, SwapPlan, Timeline, device_queues
from planner.run.executor.arena.memory_accesses import Access, PlanAccesses
from planner.run.executor.stream_dependencies import SlotStep, schedule

Node = tuple[str, int]
Pair = tuple[Node, Node]


def plan_of(n: int, outs: list[tuple[int, int]], ins: list[tuple[int, int]]) -> SwapPlan:
    empty = np.zeros((0, 2))
    return SwapPlan(
        graph="", machine="", method="", budget_bytes=0, host_budget_bytes=None, alignment=64,
        queues=device_queues(
            range(n), (SwapOut(0, ready, release) for ready, release in outs),
            (SwapIn(0, start, use) for start, use in ins),
        ),
        workspaces=(), residencies=(), host_residencies=(),
        peak_bytes=0, host_bytes=0,
        predicted=Timeline.of_device(0.0, empty, empty, empty, np.zeros(0), np.zeros(0, np.int64)),
    )  # fmt: skip


def scheduled(plan: SwapPlan, accesses: dict[Node, list[Access]]) -> tuple[SlotStep, ...]:
    sizes = {"op": len(plan.order), "out": len(plan.swap_outs), "in": len(plan.swap_ins)}
    listed = ([accesses.get((kind, number), []) for number in range(size)] for kind, size in sizes.items())
    return schedule(PlanIndex(GraphBuilder("nothing").build([]), plan), PlanAccesses(*listed))


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
    """The sentences of `planner.plan.schema`, one by one; the op `n` is the end of the step."""
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


def by_events(plan: SwapPlan, accesses: dict[Node, list[Access]]) -> tuple[list[Node], set[Pair], set[Pair]]:
    """All that there is, what the queues order, and what events order."""
    nodes, queued = queues(len(plan.order), len(plan.swap_outs), len(plan.swap_ins))
    edges: set[Pair] = set()
    issued: set[Node] = set()
    for slot, step in enumerate(scheduled(plan, accesses)):
        for kind, other, copies in (("out", "in", step.outs), ("in", "out", step.ins)):
            for copy in copies:
                for before in (("op", copy.after_op), (other, copy.after_copy)):
                    if before[1] >= 0:
                        assert before in issued
                        edges.add((before, (kind, copy.index)))
                issued.add((kind, copy.index))
        for kind, index in (("out", step.await_out), ("in", step.await_in)):
            if index >= 0:
                assert (kind, index) in issued
                edges.add(((kind, index), ("op", slot)))
        issued.add(("op", slot))
    assert len(issued) == len(nodes)
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


@st.composite
def plans_with_accesses(draw: st.DrawFn) -> tuple[SwapPlan, dict[Node, list[Access]], set[Pair]]:
    """A plan, accesses that its rules order, and the pairs of entries that access the same bytes."""
    plan = draw(plans().filter(lambda plan: all(before != after for before, after in by_the_rules(plan))))
    end = ("op", len(plan.order))
    ordered = sorted(pair for pair in by_the_rules(plan) if end not in pair)
    conflicts = draw(st.sets(st.sampled_from(ordered), max_size=12)) if ordered else set()
    accesses: dict[Node, list[Access]] = {}
    for place, (before, after) in enumerate(sorted(conflicts)):
        first, size = 10 * place, draw(st.integers(1, 10))
        reader = draw(st.sampled_from([before, after, None]))
        for node in (before, after):
            accesses.setdefault(node, []).append(Access(first, first + size, node != reader))
        accesses[before].append(Access(first + 500, first + 510, draw(st.booleans())))  # what nothing else accesses
        shared = Access(1000, 1010, writes=False)  # what everything reads and nothing writes
        accesses[after].append(shared)
        accesses[before].append(shared)
    return plan, accesses, conflicts


@given(plans())
def test_queues_that_wait_for_each_other_are_refused(plan: SwapPlan) -> None:
    if any(before == after for before, after in by_the_rules(plan)):
        with pytest.raises(StowageError, match="wait for each other"):
            scheduled(plan, {})
    else:
        scheduled(plan, {})


@given(plans_with_accesses())
def test_events_and_queues_order_what_accesses_need_and_nothing_else(
    drawn: tuple[SwapPlan, dict[Node, list[Access]], set[Pair]],
) -> None:
    plan, accesses, conflicts = drawn
    nodes, queued, events = by_events(plan, accesses)
    assert closure(nodes, queued | events) == closure(nodes, queued | conflicts)


@given(plans_with_accesses())
def test_no_event_is_waited_for_that_others_imply(
    drawn: tuple[SwapPlan, dict[Node, list[Access]], set[Pair]],
) -> None:
    plan, accesses, _ = drawn
    nodes, queued, events = by_events(plan, accesses)
    for event in events:
        assert event not in closure(nodes, queued | (events - {event}))


def test_what_shares_no_memory_waits_for_nothing() -> None:
    plan = plan_of(5, [(0, 1)], [(2, 3)])
    steps = scheduled(plan, {("op", slot): [Access(slot, slot + 1, writes=True)] for slot in range(5)})
    assert [copy.index for step in steps for copy in (*step.outs, *step.ins)] == [0, 0]
    assert {copy.after_op for step in steps for copy in (*step.outs, *step.ins)} == {-1}
    assert {step.await_out for step in steps} | {step.await_in for step in steps} == {-1}


def test_an_op_waits_in_the_slot_that_first_needs_the_memory_of_a_copy() -> None:
    plan = plan_of(4, [(0, 1)], [])
    place = Access(0, 64, writes=True)
    accesses = {("op", 0): [place], ("out", 0): [Access(0, 64, writes=False)], ("op", 3): [Access(32, 96, writes=True)]}
    assert [step.await_out for step in scheduled(plan, accesses)] == [-1, -1, -1, 0, -1]
