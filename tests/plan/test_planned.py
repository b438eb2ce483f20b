"""The planner's own plans, through everything in this room: accepted, stored, and right in every interleaving."""

from random import Random

import pytest

from planner.errors import StowageError
from planner.plan import plan_from_json, plan_to_json, validate
from planner.swap import plan_swaps
from tests.effort import EFFORT
from tests.plan.corruption import corruptions
from tests.plan.interpreter import runs_clean
from tests.swap.random_graphs import build, machine


def plans(seed):
    """A random step, and plans for it under several budgets, by every method."""
    random = Random(seed)
    graph = build(random, random.randint(1, 3))
    seconds = [random.choice([0.0, 1.0, 1.0, 2.0, 5.0]) * 1e-6 for _ in graph.ops]
    for budget in ("100%", "60%", "45%"):
        for method in (None, "on-demand"):
            try:
                yield graph, plan_swaps(graph, machine(), budget, seconds=seconds, method=method)
            except StowageError:
                continue


@pytest.fixture(scope="module")
def swapping():
    """Graphs and plans that move something, those with the most copies first."""
    found = [pair for seed in range(8 * EFFORT) for pair in plans(seed) if pair[1].swap_ins]
    return sorted(found, key=lambda pair: -len(pair[1].swap_ins))


def test_the_planners_plans_compute_the_right_values(swapping):
    assert len(swapping) > 5 * EFFORT
    for graph, plan in swapping:
        again = plan_from_json(plan_to_json(plan))
        assert validate(again, graph) == []
        assert runs_clean(again, graph, runs=2, steps=2)


def test_a_corruption_of_the_planners_plans_is_caught_or_harmless(swapping):
    random = Random(0)
    for graph, plan in swapping[:3]:
        spoilt = [pair for pair in corruptions(plan, len(graph.storages)) if pair[1].budget_bytes < 10**5]
        caught = 0
        for what, other in random.sample(spoilt, 60):
            if validate(other, graph):
                caught += 1
            else:
                assert runs_clean(other, graph, runs=3, steps=2), what
        assert caught > 40
