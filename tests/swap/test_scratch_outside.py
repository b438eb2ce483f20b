"""Scratch memory outside of the arena counts in the budget, and what is left is planned for as if it were all."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.graph import Graph
from planner.memory import step_peak
from planner.plan import validate
from planner.swap import explain, make_problem, plan_swaps, plan_with_baselines, resident_plan
from tests.effort import EFFORT
from tests.swap.random_graphs import ALIGNMENT, least_budget, machine, steps

OUTSIDE = 1000  # bytes, which is no multiple of the alignment


def bare(graph: Graph) -> Graph:
    return graph.with_workspaces({})


def outside(graph: Graph) -> Graph:
    return graph.with_scratch_outside({0: OUTSIDE, 1: OUTSIDE - 1})


def planned(graph: Graph, budget: int, seconds: Any) -> Any:
    return plan_swaps(graph, machine(), budget, seconds=seconds, method="swap", time_limit=0, progress=False)


def explained(plan: Any, graph: Graph, seconds: Any) -> Any:
    return explain(plan, graph, machine(), seconds, progress=False).decisions


@given(steps(), st.floats(0.0, 1.0))
@settings(max_examples=8 * EFFORT, deadline=None)
def test_a_plan_beside_scratch_memory_is_the_plan_within_the_rest_of_the_budget(step: Any, share: float) -> None:
    graph, seconds = step
    least = least_budget(bare(graph))
    budget = least + int(share * max(0, step_peak(bare(graph), ALIGNMENT) - least))
    within, beside = planned(bare(graph), budget, seconds), planned(outside(graph), budget + OUTSIDE, seconds)
    assert beside.budget_bytes == budget + OUTSIDE
    assert beside.workspaces == ()
    assert (beside.peak_bytes, beside.queues) == (within.peak_bytes, within.queues)
    assert validate(beside, outside(graph)) == []
    tight = replace(beside, budget_bytes=beside.peak_bytes + OUTSIDE - 1)
    (problem,) = validate(tight, outside(graph))
    assert f"and its ops up to {OUTSIDE} outside of its arena, 1 more than its budget" in problem
    alone = plan_with_baselines(bare(graph), machine(), budget, seconds=seconds, method="calendar")
    both = plan_with_baselines(outside(graph), machine(), budget + OUTSIDE, seconds=seconds, method="calendar")
    assert (alone.bound_seconds, alone.baselines) == (both.bound_seconds, both.baselines)
    assert [one.decision for one in explained(within, bare(graph), seconds)] == [
        one.decision for one in explained(beside, outside(graph), seconds)
    ]


@given(steps())
@settings(max_examples=8 * EFFORT, deadline=None)
def test_the_least_budget_and_the_peak_include_it(step: Any) -> None:
    graph, seconds = step
    whole, least = step_peak(outside(graph), ALIGNMENT), least_budget(outside(graph))
    assert whole == step_peak(bare(graph), ALIGNMENT) + OUTSIDE
    assert least == least_budget(bare(graph)) + OUTSIDE
    assert planned(outside(graph), least, seconds).budget_bytes == least
    with pytest.raises(Exception, match=f"outside of the arena.* allow at least {least} bytes"):
        planned(outside(graph), least - 1, seconds)
    fits, _ = make_problem(outside(graph), machine(), whole, None, seconds)
    assert resident_plan(fits) is not None
    if least < whole:
        small, _ = make_problem(outside(graph), machine(), whole - 1, None, seconds)
        assert resident_plan(small) is None or resident_plan(small).peak_bytes + OUTSIDE < whole  # type: ignore[union-attr]


@given(steps())
@settings(max_examples=8 * EFFORT, deadline=None)
def test_a_share_is_of_the_arena_on_the_device_and_of_the_whole_on_the_host(step: Any) -> None:
    graph, seconds = step
    arena = step_peak(bare(graph), ALIGNMENT)
    problem, host = make_problem(outside(graph), machine(), "100%", "50%", seconds)
    assert (problem.budget, problem.arena_budget) == (arena + OUTSIDE, arena)
    assert host == (arena + OUTSIDE) // 2
