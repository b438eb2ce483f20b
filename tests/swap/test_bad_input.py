"""Times, links and orders that cannot be are refused in one sentence before any kernel meets them."""

import numpy as np
import pytest

from planner.errors import StowageError
from planner.graph import GraphBuilder, Kind
from planner.plan import validate
from planner.swap import (
    METHODS,
    BudgetTooSmallError,
    explain,
    lower_bound,
    order_bound,
    plan_swaps,
    search_swaps,
    sensitivity,
    simulate,
    sweep,
)
from tests.swap.random_graphs import machine
from tests.swap.test_plans import layered

GRAPH = layered(3)
OPS = len(GRAPH.ops)
TIMES = np.full(OPS, 3e-5)


def changed(value):
    times = TIMES.copy()
    times[3] = value
    return times


@pytest.mark.parametrize(
    ("times", "says"),
    [
        (changed(np.nan), f"op {GRAPH.ops[3].name} cannot take nan seconds"),
        (changed(-1.0), "cannot take -1.0 seconds"),
        (changed(np.inf), "cannot take inf seconds"),
        (TIMES[:-1], f"give one number of seconds for each of its {OPS} ops"),
        (np.append(TIMES, 1.0), f"give one number of seconds for each of its {OPS} ops"),
        (np.tile(TIMES, (2, 1)).T, "op times of shape"),
        (["soon"] * OPS, "op times must be numbers"),
    ],
)
def test_impossible_op_times_are_refused_everywhere(times, says):
    plan = plan_swaps(GRAPH, machine(), "100%", seconds=TIMES)
    for call in (
        lambda: plan_swaps(GRAPH, machine(), "60%", seconds=times),
        lambda: search_swaps(GRAPH, machine(), "60%", seconds=times),
        lambda: lower_bound(GRAPH, machine(), 10**6, times),
        lambda: order_bound(GRAPH, machine(), 10**6, times, plan.order),
        lambda: simulate(plan, GRAPH, machine(), times),
        lambda: explain(plan, GRAPH, machine(), times),
    ):
        with pytest.raises(StowageError, match=says):
            call()


@pytest.mark.parametrize(
    "link",
    [(0.0, 1e9, 0.0), (1e9, 0.0, 0.0), (float("nan"), 1e9, 0.0), (1e9, float("nan"), 0.0), (-1e9, -1e9, 0.0),
     (float("inf"), float("inf"), 0.0), (1e-300, 1e-300, 0.0), (1e30, 1e30, 0.0),
     (1e9, 1e9, -1.0), (1e9, 1e9, float("nan"))],
)  # fmt: skip
def test_an_impossible_host_link_is_refused(link):
    with pytest.raises(StowageError, match=r"the host link of test has .*give it 1 to 1e15 bytes/s"):
        plan_swaps(GRAPH, machine(*link), "60%", seconds=TIMES)


@pytest.mark.parametrize("order", [range(OPS - 1), [0] * OPS, range(OPS)[::-1], [op + 10**6 for op in range(OPS)]])
def test_what_is_no_order_of_the_ops_has_no_bound(order):
    with pytest.raises(StowageError, match="the ops of layered cannot run in this order"):
        order_bound(GRAPH, machine(), 10**5, TIMES, list(order))


@pytest.mark.parametrize(
    ("memory", "bandwidth"), [(0, 1e9), (-4096, 1e9), (1 << 30, 0.0), (1 << 30, -1e9), (1 << 30, np.nan)]
)
def test_nothing_more_is_no_gain(memory, bandwidth):
    with pytest.raises(StowageError, match="memory and bandwidth must be more than 0, got"):
        sensitivity(GRAPH, machine(), "60%", memory=memory, bandwidth=bandwidth, seconds=TIMES)


def test_a_share_and_a_number_are_each_one_budget_of_a_sweep():
    (point,) = sweep(GRAPH, machine(), "60%", seconds=TIMES, time_limit_each=0)
    for same in (["60%"], point.budget_bytes, [point.budget_bytes]):
        assert [one.budget_bytes for one in sweep(GRAPH, machine(), same, seconds=TIMES, time_limit_each=0)] == [
            point.budget_bytes
        ]
    with pytest.raises(StowageError, match=r'0.6 is not a whole number of bytes; write "8GiB"'):
        sweep(GRAPH, machine(), 0.6, seconds=TIMES, time_limit_each=0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [Kind.INPUT, Kind.PARAMETER])
def test_a_step_that_only_returns_what_it_was_given_has_a_plan(kind, method):
    builder = GraphBuilder("returned")
    given = builder.add_tensor("given", builder.add_storage("given", 1000, kind), (250,))
    graph = builder.build([given])
    for budget in (1, 5000):
        plan = plan_swaps(graph, machine(), budget, seconds=np.zeros(0), method=method)
        assert validate(plan, graph) == []
        assert plan.predicted.seconds == 0.0


@pytest.mark.parametrize("method", METHODS)
def test_ops_without_any_tensor_have_a_plan(method):
    builder = GraphBuilder("nothing")
    for name in ("first", "second"):
        builder.add_op(name, "aten.nothing.default", [], [])
    graph = builder.build()
    plan = plan_swaps(graph, machine(), 1, seconds=np.ones(2), method=method)
    assert validate(plan, graph) == []
    assert (plan.peak_bytes, plan.predicted.seconds) == (0, 2.0)


@pytest.mark.parametrize(
    ("changed", "too_small"),
    [
        ({"budget": "1KiB"}, True),
        ({"host_budget": 1}, True),
        ({"budget": 0}, False),
        ({"seed": -1}, False),
        ({"method": "magic"}, False),
        ({"evaluations": -1}, False),
    ],
)
def test_budgets_without_a_plan_are_told_from_mistakes(changed, too_small):
    request = {"budget": "60%", "method": "calendar", "evaluations": None}
    with pytest.raises(StowageError) as refused:
        search_swaps(GRAPH, machine(), **{**request, **changed}).wait(progress=False)
    assert isinstance(refused.value, BudgetTooSmallError) == too_small
