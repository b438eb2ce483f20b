"""Beside the fastest of all plans, found by trying them all, on steps of at most eight ops.

What "all plans" are is said in `exhaustive`; a plan found there is validated and timed by others.
"""

from functools import cache
from math import inf

import numpy as np
import pytest

from planner.plan import validate
from planner.swap import lower_bound, plan_with_baselines
from planner.swap.bounds.fixed_order import order_bound
from tests.effort import EFFORT
from tests.swap.event_simulator import step_seconds
from tests.swap.exhaustive import UNIT, optimum, orders, plan_of
from tests.swap.random_graphs import machine
from tests.swap.tiny_steps import drawn

_CHUNKS, _EACH = EFFORT, 20
_MOST_ORDERS = 24
_CLOSE = 1 + 1e-9
#: A storage of `UNIT` bytes takes a microsecond; both directions at full speed, as `exhaustive` asks for.
_MACHINE = machine(UNIT * 1e6, 2 * UNIT * 1e6, 0.0)


@cache
def planned(number):
    graph, seconds, budget = drawn(number, _MOST_ORDERS)
    return plan_with_baselines(graph, _MACHINE, budget, seconds=seconds, method="swap")


@cache
def faster(number):
    """The fastest plan of all, where it is faster than the planner's; else None."""
    graph, seconds, budget = drawn(number, _MOST_ORDERS)
    below = planned(number).plan.predicted.seconds / _CLOSE
    return optimum(graph, seconds, _MACHINE.host_link.bandwidth, budget, orders(graph, _MOST_ORDERS), below)


@pytest.mark.parametrize("chunk", range(_CHUNKS))
def test_no_plan_at_all_is_faster_than_the_bound_and_the_planner_finds_the_fastest_on_nineteen_of_twenty(chunk):
    missed = {}
    for number in range(chunk * _EACH, (chunk + 1) * _EACH):
        graph, seconds, budget = drawn(number, _MOST_ORDERS)
        bound, best = lower_bound(graph, _MACHINE, budget, np.array(seconds)), faster(number)
        planners = planned(number).plan.predicted.seconds
        if best is None:
            assert bound <= planners * _CLOSE, number
            continue
        plan = plan_of(best, graph, _MACHINE, budget, seconds)
        assert validate(plan, graph) == [], number
        assert step_seconds(plan, graph, _MACHINE.host_link, seconds) == pytest.approx(best.seconds), number
        assert bound <= best.seconds * _CLOSE, number
        assert order_bound(graph, _MACHINE, budget, np.array(seconds), best.order) <= best.seconds * _CLOSE, number
        missed[number] = f"{planners * 1e6:g} us where {best.seconds * 1e6:g} is possible, in order {best.order}"
    assert len(missed) <= _EACH / 20, missed


@pytest.mark.parametrize("chunk", range(_CHUNKS))
def test_the_bound_of_an_order_is_below_the_fastest_plan_of_that_order_and_that_below_the_planners(chunk):
    said = 0
    for number in range(chunk * _EACH, (chunk + 1) * _EACH):
        graph, seconds, budget = drawn(number, _MOST_ORDERS)
        plan = planned(number).plan
        if len(graph.ops) > 6:
            continue
        best = optimum(graph, seconds, _MACHINE.host_link.bandwidth, budget, [plan.order], inf)
        assert best is not None
        assert best.seconds <= plan.predicted.seconds * _CLOSE, number
        bound = order_bound(graph, _MACHINE, budget, np.array(seconds), plan.order)
        assert planned(number).bound_seconds <= bound * _CLOSE
        assert bound <= best.seconds * _CLOSE, number
        said += bound > sum(seconds) * _CLOSE
    assert said > 0  # more than that ops take their time
