"""Pictures of plans in which ops run again, held against the residencies counted one by one and against the replay."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.graph import Graph
from planner.memory import lifetimes
from planner.plan import PlanIndex, SwapPlan, memory_over_time, validate
from planner.swap import search_swaps
from tests.effort import EFFORT
from tests.memory.graphs import random_graph, random_order
from tests.plan.again import with_repeats
from tests.plan.again_by_hand import MAKE, ORDER, TWIST, A, plan, step
from tests.plan.plans import random_plan
from tests.widgets.steps import real
from widgets.figures import address_map, streams
from widgets.info import get_address_map, get_memory_by_kind, get_streams

GPT = "gpt:layers=3,hidden=1024,sequence=1024,batch=16"
SEEDS = st.integers(0, 10**6)


def random_repeats(seed: int) -> tuple[Graph, SwapPlan]:
    graph = random_graph(seed % 997)
    return graph, random_plan(graph, with_repeats(graph, random_order(graph, seed), seed), seed)


@given(SEEDS)
@settings(max_examples=40 * EFFORT, deadline=None)
def test_every_slot_holds_the_bytes_of_its_residencies(seed: int) -> None:
    graph, made = random_repeats(seed)
    assert validate(made, graph) == []
    there: Counter[int] = Counter()
    for stay in made.residencies:
        for slot in range(stay.start, stay.stop):
            there[slot] += graph.storages[stay.storage].bytes
    info = get_memory_by_kind(graph, made, axis="slots")
    assert info.total.tolist() == [there[slot] for slot in range(len(made.order))]
    boxes = get_address_map(graph, made, axis="slots")
    for slot, size in there.items():
        assert boxes.bytes[(boxes.start <= slot) & (slot < boxes.stop)].sum() == size


@given(SEEDS)
@settings(max_examples=40 * EFFORT, deadline=None)
def test_while_an_op_runs_the_bytes_are_those_of_the_replay(seed: int) -> None:
    graph, made = random_repeats(seed)
    times, levels = memory_over_time(PlanIndex(graph, made), made.predicted.spans)
    info = get_memory_by_kind(graph, made)
    boxes = get_address_map(graph, made)
    for moment in made.predicted.compute.mean(axis=1):
        expected = levels[np.searchsorted(times, moment, side="right") - 1]
        assert info.total[np.searchsorted(info.edges, moment, side="right") - 1] == expected
        assert boxes.bytes[(boxes.start <= moment) & (moment < boxes.stop)].sum() == expected


@given(SEEDS)
@settings(max_examples=20 * EFFORT, deadline=None)
def test_what_is_recomputed_was_there_before_and_is_not_copied_in(seed: int) -> None:
    graph, made = random_repeats(seed)
    arrivals = {(copy.storage, copy.start) for copy in made.swap_ins}
    boxes = get_address_map(graph, made, axis="slots")
    for storage, start, recomputed in zip(boxes.storage, boxes.start, boxes.recomputed, strict=True):
        op = made.order[int(start)]
        writes = storage in graph.writes[op] and storage not in graph.ops[op].first_run_only
        again = op in made.order[: int(start)]
        assert recomputed == (writes and again and (storage, start) not in arrivals)


def test_each_run_of_an_op_is_in_the_streams_and_marked() -> None:
    info = get_streams(step(), plan())
    assert info.op.tolist() == list(ORDER)
    assert info.again.tolist() == [False, False, False, True, True, False, False]
    assert info.op_names[3:5] == info.op_names[:2] == ("make", "twist")
    assert info.summary == (
        "The step is predicted to take 7.00 s; nothing is swapped and compute never waits; "
        "it runs 2 ops again, +40 % compute."
    )


def test_a_recomputed_tensor_has_a_box_of_its_own() -> None:
    info = get_address_map(step(), plan())
    again = np.flatnonzero(info.recomputed).tolist()
    assert [(info.storage[box], info.start[box], info.stop[box], info.offset[box]) for box in again] == [(A, 3, 6, 256)]
    assert "none are swapped; 1 is recomputed; " in info.summary


def test_what_the_order_would_hold_does_not_grow_by_what_runs_again() -> None:
    graph = step()
    info = get_memory_by_kind(graph, plan())
    first, more, last, update = 0, 2, 3, 4  # where each op runs once
    once = lifetimes(graph).live_bytes.tolist()
    expected = [once[slot] for slot in (first, TWIST, more, more, more, last, update)]
    assert info.unswapped.tolist() == [[slot, size] for slot, size in enumerate(expected)]
    assert "; this order would take 256 B with all kept; " in info.summary


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_figures_stripe_what_runs_again_and_say_so(theme: str) -> None:
    bars = {bar.name: bar for bar in streams(step(), plan(), theme=theme).data}
    assert len(bars["forward"].x) == len(ORDER) - 2
    again = bars["forward, run again"]
    assert again.marker.pattern.shape == "-"
    assert again.hovertext[0].startswith("<b>make</b><br>forward, run again<br>")
    figure = address_map(step(), plan(), theme=theme)
    boxes = {bar.name: bar for bar in figure.data}
    assert (len(boxes["recomputed"].x), boxes["recomputed"].marker.pattern.shape) == (1, "-")
    assert sum("recomputed: its op is run again" in text for text in boxes["activations"].hovertext) == 1
    assert any("recomputed" in note.text for note in figure.layout.annotations if note.name == "key")


def test_a_plan_of_the_planner_is_drawn_with_all_that_runs_again() -> None:
    graph = real(GPT)[1]
    gpu = planner.machine("h200")
    made = search_swaps(graph, gpu, "40%", method="joint", time_limit=None, evaluations=200).wait(progress=False)
    info = get_streams(graph, made)
    assert info.again.sum() == len(made.order) - len(graph.ops) > 0
    assert {graph.ops[op].phase for op in info.op[info.again]} == {graph.ops[MAKE].phase}
    assert get_memory_by_kind(graph, made, axis="slots").peak_bytes <= made.peak_bytes
    boxes = get_address_map(graph, made)
    assert boxes.recomputed.any()
    assert (boxes.start < boxes.stop).all()
