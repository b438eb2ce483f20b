"""Whatever the graph and the budget: a valid plan within it, no slower than any baseline, no faster than the bound."""

from random import Random

import pytest

from planner.memory import step_peak
from planner.plan import plan_to_json, validate
from planner.swap import plan_with_baselines
from planner.swap.baselines.registry import BASELINES
from planner.swap.bounds.fixed_order import order_bound
from planner.swap.problem.problem import build_problem
from tests.effort import EFFORT
from tests.swap.random_graphs import ALIGNMENT, build, least_budget, machine

_CHUNKS, _EACH = 2 * EFFORT, 6


@pytest.mark.parametrize("chunk", range(_CHUNKS))
def test_no_plan_is_slower_than_a_baseline_or_faster_than_the_bound(chunk):
    for number in range(chunk * _EACH, (chunk + 1) * _EACH):
        random = Random(number)
        graph = build(random, random.randint(1, 8))
        scale = random.choice([1e-7, 1e-6, 1e-5])
        seconds = [random.choice([0.0, 1.0, 1.0, 2.0, 5.0]) * scale for _ in graph.ops]
        where = machine(1e9, random.choice([1.2e9, 2e9]), random.choice([0.0, 1e-6]))
        least = least_budget(graph)
        budget = least + int(random.random() ** 2 * max(0, step_peak(graph, ALIGNMENT) - least))
        found = plan_with_baselines(graph, where, budget, seconds=seconds, method="swap")
        assert validate(found.plan, graph) == [], number
        assert found.plan.peak_bytes <= budget, number
        assert found.bound_seconds <= found.plan.predicted.seconds * (1 + 1e-9), number
        of_order = order_bound(graph, where, budget, seconds, found.plan.order)
        assert found.bound_seconds <= of_order <= found.plan.predicted.seconds * (1 + 1e-9), number
        assert set(found.baselines) == set(BASELINES)
        problem = build_problem(graph, where, budget, seconds)
        for name, make in BASELINES.items():
            plan = make(problem)
            if plan is None:
                assert found.baselines[name] is None, number
                continue
            assert validate(plan, graph) == [], (number, name)
            assert plan.method == name
            assert plan.peak_bytes <= budget, (number, name)
            assert found.plan.predicted.seconds <= plan.predicted.seconds == found.baselines[name], (number, name)


def test_a_baseline_makes_the_same_plan_however_often_it_is_asked():
    random = Random(5)
    graph = build(random, 8)
    seconds = [1e-6] * len(graph.ops)
    budget = (least_budget(graph) + step_peak(graph, ALIGNMENT)) // 2
    problem = build_problem(graph, machine(), budget, seconds)
    for make in BASELINES.values():
        plans = [plan_to_json(plan) for plan in (make(problem), make(problem)) if plan is not None]
        assert len(set(plans)) <= 1
