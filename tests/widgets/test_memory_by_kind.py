"""Bytes by kind against sums made by looking at every residency in every slot."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from planner.errors import StowageError
from planner.graph import Graph, Kind
from planner.memory import lifetimes
from planner.plan import SwapPlan
from tests.widgets.steps import MIB, by_hand, plan_by_hand, real, real_plan
from widgets.figures._memory_by_kind import draw
from widgets.figures.theme import LIGHT
from widgets.info import Group, get_memory_by_kind

COUNTED_AS = {Kind.BUFFER: "parameters", Kind.OUTPUT: "activations", Kind.WORKSPACE: "workspace", Kind.INPUT: "input"}
MODELS = ["mlp:optimizer=adam", "rnn:layers=2,hidden=64,steps=8,batch=32,optimizer=momentum"]


def group_of(graph: Graph, storage: int) -> str:
    kind = graph.storages[storage].kind
    return COUNTED_AS.get(kind, kind.value.replace("_", " ") + "s")


def in_slot(graph: Graph, plan: SwapPlan, slot: int) -> Counter[str]:
    amounts: Counter[str] = Counter()
    for stay in plan.residencies:
        if stay.start <= slot < stay.stop:
            amounts[group_of(graph, stay.storage)] += graph.storages[stay.storage].bytes
    return amounts


@pytest.mark.parametrize("spec", MODELS)
@pytest.mark.parametrize("budget", ["80%", "100%"])
def test_every_slot_of_a_plan_adds_up(spec: str, budget: str) -> None:
    graph, plan = real(spec)[1], real_plan(spec, budget)
    info = get_memory_by_kind(graph, plan, axis="slots")
    assert info.edges.tolist() == list(range(len(graph.ops) + 1))
    for slot in range(len(graph.ops)):
        expected = in_slot(graph, plan, slot)
        assert {group.value: int(amounts[slot]) for group, amounts in info.bytes.items() if amounts[slot]} == expected
        assert info.total[slot] == expected.total()
    assert info.peak_bytes == info.total.max() <= plan.peak_bytes <= info.budget_bytes


@pytest.mark.parametrize("spec", MODELS)
def test_without_a_plan_it_is_the_captured_order_unswapped(spec: str) -> None:
    graph = real(spec)[1]
    info = get_memory_by_kind(graph)
    assert info.axis == "slots"
    assert info.total.tolist() == lifetimes(graph).live_bytes.tolist()
    assert info.budget_bytes is None
    assert not len(info.unswapped)


def test_the_step_by_hand_op_by_op() -> None:
    info = get_memory_by_kind(by_hand())
    parameters, inputs = [6, 6, 6, 6, 6], [1, 0, 0, 0, 0]
    activations, gradients, workspace = [8, 11, 11.5, 8.5, 0.5], [0, 0, 0, 2, 2], [0, 5, 0, 0, 0]
    expected = zip(parameters, inputs, activations, gradients, workspace, strict=True)
    assert (info.total / MIB).tolist() == [sum(slot) for slot in expected]
    assert (info.bytes[Group.ACTIVATION] / MIB).tolist() == activations
    assert (info.peak_bytes, info.peak_at, info.peak_op) == (22 * MIB, 1, "b/mm")


def test_the_plan_by_hand_second_by_second() -> None:
    graph = by_hand()
    info = get_memory_by_kind(graph, plan_by_hand(graph))
    # (from, until): what is there, in MiB; parameters are 6 throughout
    spans = {(0, 1): 15, (1, 2): 22, (2, 2.5): 17, (2.5, 3.5): 9.5, (3.5, 5): 14.5, (5, 6): 16.5, (6, 7): 8.5}
    assert info.edges.tolist() == [0, 1, 2, 2.5, 3.5, 5, 6, 7]
    assert {
        (start, stop): total / MIB for start, stop, total in zip(info.edges, info.edges[1:], info.total, strict=False)
    } == spans
    assert (info.peak_bytes, info.peak_at, info.peak_op, info.budget_bytes) == (22 * MIB, 1, "b/mm", 24 * MIB)


@pytest.mark.parametrize("spec", MODELS)
def test_seconds_hold_no_more_than_slots(spec: str) -> None:
    graph, plan = real(spec)[1], real_plan(spec, "80%")
    seconds = get_memory_by_kind(graph, plan)
    assert seconds.edges[0] == 0
    assert seconds.end == plan.predicted.seconds
    assert seconds.peak_bytes <= plan.peak_bytes
    for slot, start in enumerate(plan.predicted.compute[:, 0]):  # while an op runs, its slot's storages are there
        moment = np.searchsorted(seconds.edges, start, side="right") - 1
        slot_total = in_slot(graph, plan, slot).total()
        early = sum(graph.storages[swap.storage].bytes for swap in plan.swap_ins if swap.start == slot)
        assert seconds.total[moment] >= slot_total - early


def test_a_swapping_plan_tells_what_its_order_takes_unswapped() -> None:
    graph, plan = real(MODELS[0])[1], real_plan(MODELS[0], "80%")
    info = get_memory_by_kind(graph, plan)
    assert info.unswapped[:, 1].tolist() == lifetimes(graph, plan.order).live_bytes.tolist()
    assert info.unswapped_peak_bytes > info.budget_bytes
    assert not len(get_memory_by_kind(graph, real_plan(MODELS[0], "100%")).unswapped)


@pytest.mark.parametrize("spec", MODELS)
@pytest.mark.parametrize("budget", [None, "80%"])
def test_holders_hold_the_peak_and_nothing_else(spec: str, budget: str | None) -> None:
    graph = real(spec)[1]
    plan = real_plan(spec, budget) if budget else None
    info = get_memory_by_kind(graph, plan, axis="slots")
    assert sum(holder.bytes for holder in info.holders) == info.peak_bytes
    sizes = [holder.bytes for holder in info.holders]
    assert sizes == sorted(sizes, reverse=True)
    by_group: Counter[Group] = Counter()
    for holder in info.holders:
        by_group[holder.group] += holder.bytes
    assert by_group == {group: size for group, size in info.at_peak.items() if size}


def test_holders_of_the_step_by_hand() -> None:
    rows = [(row.name, row.group.value, row.storages, row.bytes / MIB) for row in get_memory_by_kind(by_hand()).holders]
    assert rows == [
        ("a/mm", "activations", 1, 8), ("b/mm/workspace", "workspace", 1, 5), ("a.weight", "parameters", 1, 4),
        ("b/mm", "activations", 1, 3), ("b.weight", "parameters", 1, 2),
    ]  # fmt: skip


def test_a_budget_is_read_as_everywhere() -> None:
    graph = by_hand()
    assert get_memory_by_kind(graph, budget="8MiB").budget_bytes == 8 * MIB
    assert get_memory_by_kind(graph, budget="50%").budget_bytes == 11 * MIB
    assert get_memory_by_kind(graph, plan_by_hand(graph), budget=123).budget_bytes == 123
    with pytest.raises(StowageError, match="not a budget"):
        get_memory_by_kind(graph, budget="lots")


def test_the_summary_says_it_in_one_sentence() -> None:
    graph = by_hand()
    assert get_memory_by_kind(graph, plan_by_hand(graph)).summary == (
        "Memory peaks at 22.0 MiB at 1.00 s, in b/mm; activations hold 50 %; "
        "this order would take 22.0 MiB unswapped; the budget is 24.0 MiB."
    )


def test_another_graphs_plan_is_refused() -> None:
    with pytest.raises(StowageError, match="is not for by hand"):
        get_memory_by_kind(by_hand(), real_plan(MODELS[0], "80%"))


def test_another_plans_timeline_is_refused() -> None:
    graph, plan = real(MODELS[0])[1], real_plan(MODELS[0], "80%")
    with pytest.raises(StowageError, match="not one of this plan"):
        get_memory_by_kind(graph, plan, timeline=plan_by_hand(by_hand()).predicted)


@pytest.mark.parametrize("share", np.linspace(0, 1, 21))
def test_in_a_narrow_plot_the_peak_and_the_budget_have_their_labels_side_by_side(share: float) -> None:
    """Wherever the peak is: on what machine the step is planned decides that."""
    graph = by_hand()
    info = get_memory_by_kind(graph, plan_by_hand(graph))
    info = replace(info, peak_at=share * info.end, budget_bytes=info.peak_bytes)
    labels = draw(info, LIGHT).layout.annotations
    peak, budget = (
        next(label for label in labels if label.text.startswith(word))
        for word in ("\N{BLACK DOWN-POINTING SMALL TRIANGLE} peak", "budget")
    )
    spans = []
    for start, anchor in ((share, peak.xanchor), (budget.x, budget.xanchor)):
        left = start - 0.39 * {"left": 0.0, "center": 0.5, "right": 1.0}[anchor]
        spans.append((left, left + 0.39))
    (a_start, a_stop), (b_start, b_stop) = spans
    assert a_stop <= b_start or b_stop <= a_start
