"""Two plans of one step side by side, against plans by hand and plans drawn at random."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner import StowageError
from planner.graph import Graph, GraphBuilder, Kind
from planner.plan import Residency, SwapPlan, Treatment, compare_plans, device_queues, validate
from tests.effort import EFFORT
from tests.memory.graphs import random_graph, random_order
from tests.plan import again_by_hand, by_hand
from tests.plan.again import with_repeats
from tests.plan.changing import replace
from tests.plan.plans import random_plan, with_times


def everything_stays() -> SwapPlan:
    """The step by hand without copies: each storage at an address of its own."""
    n = by_hand.END
    lives = [(0, n), (0, n), (0, 1), (0, 5), (1, 3), (2, n), (3, 5), (4, n), (5, 6)]
    offset = {number: 64 * number for number in range(9)} | {by_hand.G: 64 * by_hand.B}
    residencies = tuple(Residency(number, *life, offset[number]) for number, life in enumerate(lives))
    plan = replace(by_hand.plan(), residencies=residencies, host_residencies=(), peak_bytes=576, host_bytes=0)
    return with_times(replace(plan, queues=device_queues(range(7)), budget_bytes=1024, method="resident"))


def test_what_is_swapped_in_one_plan_alone_is_named_with_its_size_and_when_it_is_there():
    assert validate(everything_stays(), by_hand.step()) == []
    found = compare_plans(by_hand.step(), everything_stays(), by_hand.plan())
    assert [(one.name, one.first, one.second) for one in found.tensors] == [
        ("m", Treatment.KEPT, Treatment.SWAPPED), ("a", Treatment.KEPT, Treatment.SWAPPED),
    ]  # fmt: skip
    assert [one.bytes for one in found.tensors] == [64, 64]
    a = found.tensors[1]
    assert a.kind is Kind.ACTIVATION
    assert a.second_spans == ((0.0, 3.0), (4.0, 7.0))  # until its copy out has ended, from where its copy in begins
    assert len(a.first_spans) == 1
    assert found.same_tensors == 6  # without scratch memory
    assert (found.first.peak_bytes, found.second.peak_bytes) == (576, 320)
    assert (found.second.bytes_out, found.second.bytes_in, found.second.host_bytes) == (128, 128, 128)
    assert (found.first.bytes_out, found.first.recomputed_ops) == (0, 0)
    assert found.second.step_seconds == 10.0


def test_what_is_made_again_is_called_recomputed():
    step, plan = again_by_hand.step(), again_by_hand.plan()
    once = replace(
        plan,
        queues=device_queues(range(5)),
        residencies=(
            Residency(0, 0, 5, 0), Residency(1, 0, 1, 64), Residency(2, 0, 4, 128), Residency(3, 2, 4, 192),
            Residency(5, 3, 5, 256), Residency(4, 0, 1, 320),
        ),
    )  # fmt: skip
    found = compare_plans(step, plan, with_times(once))
    assert [(one.name, one.first, one.second) for one in found.tensors] == [("a", Treatment.RECOMPUTED, Treatment.KEPT)]
    assert (found.first.recomputed_ops, found.second.recomputed_ops) == (2, 0)
    assert found.first.recompute_seconds > found.second.recompute_seconds == 0


def random_plans(seed: int) -> tuple[Graph, SwapPlan, SwapPlan]:
    graph = random_graph(seed)
    orders = [with_repeats(graph, random_order(graph, seed + number), seed + number) for number in range(2)]
    first, second = (random_plan(graph, order, seed + number) for number, order in enumerate(orders))
    return graph, first, second


@given(st.integers(0, 10**6))
@settings(max_examples=20 * EFFORT, deadline=None)
def test_of_any_two_plans_it_says_what_their_queues_and_residencies_say(seed):
    graph, first, second = random_plans(seed)
    found = compare_plans(graph, first, second)
    differing = {one.storage: (one.first, one.second) for one in found.tensors}
    for storage in graph.storages:
        ways = tuple(treated(graph, plan, storage.id) for plan in (first, second))
        if storage.bytes and storage.kind is not Kind.WORKSPACE:
            assert differing.get(storage.id, ("same",)) == (ways if ways[0] != ways[1] else ("same",))
        else:
            assert storage.id not in differing
    assert [one.bytes for one in found.tensors] == sorted((one.bytes for one in found.tensors), reverse=True)
    for figures, plan in ((found.first, first), (found.second, second)):
        assert figures.bytes_out == sum(graph.storages[copy.storage].bytes for copy in plan.swap_outs)
        assert figures.recomputed_ops == len(plan.order) - len(graph.ops)


def treated(graph: Graph, plan: SwapPlan, storage: int) -> str:
    """What a plan does with a storage, read off its rows."""
    arrivals = {copy.start for copy in plan.swap_ins if copy.storage == storage}
    copied = bool(arrivals) or any(copy.storage == storage for copy in plan.swap_outs)
    again = any(
        one.start not in arrivals
        and plan.order[one.start] in plan.order[: one.start]
        and storage in graph.writes_again[plan.order[one.start]]
        for one in plan.residencies
        if one.storage == storage and one.start < len(plan.order)
    )
    return {(0, 0): "kept", (1, 0): "swapped", (0, 1): "recomputed", (1, 1): "swapped and recomputed"}[copied, again]


@given(st.integers(0, 10**6))
@settings(max_examples=20 * EFFORT, deadline=None)
def test_memory_differs_throughout_the_times_named_and_hardly_elsewhere(seed):
    graph, first, second = random_plans(seed)
    found = compare_plans(graph, first, second)
    end = min(first.predicted.seconds, second.predicted.seconds)
    moments = np.linspace(0, end, 200, endpoint=False)
    least = 0.01 * max(found.first_memory.bytes.max(), found.second_memory.bytes.max())
    one, other = (
        memory.bytes[np.searchsorted(memory.seconds, moments, side="right") - 1]
        for memory in (found.first_memory, found.second_memory)
    )
    for moment, more in zip(moments.tolist(), (other - one).tolist(), strict=True):
        span = next((span for span in found.times if span.start <= moment < span.stop), None)
        assert (span is not None) == (abs(more) >= least and more != 0)
        assert span is None or (more * span.bytes > 0 and abs(more) <= abs(span.bytes))


def test_a_plan_and_itself_do_not_differ():
    found = planner.compare_plans(by_hand.step(), by_hand.plan(), by_hand.plan())
    assert found.tensors == found.times == ()
    assert "0 tensors of 0 B are treated differently" in repr(found)


def test_it_shows_itself_in_one_line_and_in_a_notebook_as_tables():
    found = compare_plans(by_hand.step(), everything_stays(), by_hand.plan())
    assert repr(found) == (
        "<PlanComparison of by hand: peaks of 576 B and 320 B, steps of "
        f"{found.figure_rows()[4][1]} and 10.0 s; 2 tensors of 128 B are treated differently>"
    )
    html = found._repr_html_()
    assert html.count("<table>") == 3
    assert '<td style="text-align:left">320 B (-44 %)</td>' in html


def test_a_name_with_markup_is_text():
    build = GraphBuilder("step")
    tensor = build.add_tensor("x", build.add_storage("<b>x</b>", 64, Kind.ACTIVATION), [64])
    build.add_op("op", "make", [], [tensor])
    assert "<b>" not in compare_plans(*same_but_swapped(build.build([tensor])))._repr_html_()


def same_but_swapped(graph: Graph) -> tuple[Graph, SwapPlan, SwapPlan]:
    """Two plans of a step of one op, of which one copies the result to the host at the end."""
    found = [random_plan(graph, [0], seed) for seed in range(40)]
    return (
        graph,
        next(one for one in found if not one.swap_outs),
        next((one for one in found if one.swap_outs), found[0]),
    )


def test_plans_of_different_graphs_are_refused():
    step = by_hand.step()
    with pytest.raises(StowageError, match=r"the two plans are of different graphs, so they share no tensors"):
        compare_plans(step, by_hand.plan(), again_by_hand.plan())
    with pytest.raises(StowageError, match=r"this plan is not for again; give the graph that it was made for"):
        compare_plans(again_by_hand.step(), by_hand.plan(), by_hand.plan())


def test_what_is_no_valid_plan_is_refused():
    wrong = replace(by_hand.plan(), swap_outs=by_hand.plan().swap_outs[1:])
    with pytest.raises(StowageError, match=r"^the second plan is not valid: "):
        compare_plans(by_hand.step(), by_hand.plan(), wrong)
    with pytest.raises(StowageError, match="the second must be of type SwapPlan, got None"):
        compare_plans(by_hand.step(), by_hand.plan(), None)
