"""The search: it improves, it can be resumed, and neither threads nor pauses change what it finds."""

import json
from concurrent.futures import ThreadPoolExecutor
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cancel import Cancelled
from planner.graph import GraphBuilder, Kind
from planner.plan import plan_to_json, validate
from planner.swap.bounds.any_order import bound_of
from planner.swap.methods.method import SearchContext
from planner.swap.methods.swapadvisor import Genetic
from planner.swap.methods.swapadvisor.genetic import softmax
from planner.swap.problem.problem import build_problem
from tests.swap.random_graphs import build, machine


def one_by_one(function, items):
    return [function(item) for item in items]


def context(seed=0, each=one_by_one, share=0.3):
    graph = build(Random(7), layers=12)
    touched = sum(storage.bytes for storage in graph.storages)
    problem = build_problem(graph, machine(), int(share * touched), np.full(len(graph.ops), 1e-6))
    return SearchContext(problem, bound_of(problem), seed, each, best=lambda: 1.0)  # there is a plan already


def plans_of(search, search_steps):
    """What some turns bring, as text."""
    found = [search.search_step() for _ in range(search_steps)]
    return [
        plan_to_json(search_step.plan)
        for search_step in found
        if search_step is not None and search_step.plan is not None
    ]


FEW = {"individuals": 24}


def test_plans_get_better_and_are_valid():
    given_ = context()
    search, best, seen = Genetic(given_, **FEW), np.inf, 0
    for _ in range(12):
        search_step = search.search_step()
        seen += search_step.evaluations
        if search_step.plan is not None:
            assert validate(search_step.plan, given_.problem.graph) == []
            assert search_step.plan.predicted.seconds < best
            best = search_step.plan.predicted.seconds
    assert given_.bound <= best < np.inf
    assert len(search.population) == 24
    assert search.generation == (seen - 24) // 24 > 0
    assert min(one.seconds for one in search.population) == best


@pytest.mark.parametrize("replacement", ["fastest", "softmax"])
def test_a_resumed_search_finds_what_an_uninterrupted_one_does(replacement):
    whole = plans_of(Genetic(context(), **FEW, replacement=replacement), 10)
    for pause in (1, 4):
        saved_first = Genetic(context(), **FEW, replacement=replacement)
        found = plans_of(saved_first, pause)
        assert 0 < len(found) < len(whole)
        memory = json.loads(json.dumps(saved_first.state_dict(), allow_nan=False))
        second = Genetic(context(), **FEW, replacement=replacement)
        second.load_state_dict(memory)
        assert found + plans_of(second, 10 - pause) == whole


def test_threads_change_nothing():
    with ThreadPoolExecutor(4) as pool:
        threaded = Genetic(context(each=lambda function, items: list(pool.map(function, items))), **FEW)
        alone = Genetic(context(), **FEW)
        assert plans_of(threaded, 8) == plans_of(alone, 8)
        assert threaded.state_dict() == alone.state_dict()


def test_seeds_differ_and_the_same_seed_does_not():
    saved_first, again, other = (Genetic(context(seed), **FEW) for seed in (1, 1, 2))
    assert plans_of(saved_first, 3) == plans_of(again, 3)
    plans_of(other, 3)
    assert saved_first.state_dict() == again.state_dict() != other.state_dict()


def test_a_search_step_that_is_cancelled_is_done_again():
    search, whole = Genetic(context(), **FEW), plans_of(Genetic(context(), **FEW), 6)
    found = plans_of(search, 2)
    before, stop = search.state_dict(), search.context.problem.stop
    stop.cancel()
    with pytest.raises(Cancelled):
        search.search_step()
    assert search.state_dict() == before
    stop.clear()
    assert found + plans_of(search, 4) == whole


def test_without_the_schedule_all_orders_are_the_captured_one():
    search = Genetic(context(), **FEW, search_schedule=False)
    plans_of(search, 8)
    assert search.generation > 0
    assert {tuple(one.order.tolist()) for one in search.population} == {tuple(range(search.context.problem.ops))}
    assert len({tuple(one.allocation.counts.tolist()) for one in search.population}) > 1


def test_without_the_allocation_all_pools_are_the_default_one():
    search = Genetic(context(share=0.4), **FEW, search_allocation=False)
    plans_of(search, 8)
    pools = {(*one.allocation.classes.tolist(), *one.allocation.counts.tolist()) for one in search.population}
    assert pools == {(*search.default_pool.classes.tolist(), *search.default_pool.counts.tolist())}
    assert len({tuple(one.order.tolist()) for one in search.population}) > 1


def test_without_either_there_is_one_individual_and_the_search_ends():
    search = Genetic(context(share=0.4), search_schedule=False, search_allocation=False)
    assert search.search_step().evaluations == 1
    assert search.search_step() is None


def test_a_search_that_meets_the_bound_ends():
    search = Genetic(context(share=3.0), **FEW)
    found = plans_of(search, 5)
    assert found
    assert search.best == pytest.approx(search.context.bound)
    assert search.search_step() is None


def test_a_budget_that_no_pool_fits_gives_no_plan_and_no_error():
    search = Genetic(context(share=0.01), **FEW)
    assert plans_of(search, 6) == []
    assert all(np.isinf(one.seconds) for one in search.population)
    assert json.loads(json.dumps(search.state_dict(), allow_nan=False))["best"] is None


@pytest.mark.parametrize(("ops", "size"), [(0, 0), (1, 64), (3, 0)])
def test_almost_nothing_is_still_a_step(ops, size):
    b = GraphBuilder("tiny")
    for i in range(ops):
        name = f"y{i}"
        b.add_op(
            f"op{i}", "aten.op.default", [], [b.add_tensor(name, b.add_storage(name, size, Kind.OUTPUT), (size // 4,))]
        )
    problem = build_problem(b.build(range(ops)), machine(), 64, np.ones(ops))
    for bound in (float(ops), 0.0):  # one that is met at once, and one that never is
        search = Genetic(SearchContext(problem, bound, 0, one_by_one), individuals=4)
        search_steps = [search.search_step() for _ in range(4)]
        assert validate(search_steps[0].plan, problem.graph) == []
        assert search_steps[0].plan.predicted.seconds == ops
        assert (search_steps[1] is None) == (bound == ops)


@given(st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=20), st.floats(0.05, 5.0))
@settings(deadline=None)
def test_the_faster_is_the_likelier_parent(seconds, temperature):
    """By exp(t') with t' = (T_best - t) / T_best, whatever the unit of time."""
    seconds = np.array(seconds)
    probabilities = softmax(seconds, temperature)
    assert probabilities.sum() == pytest.approx(1.0)
    assert (np.diff(probabilities[np.argsort(seconds)]) <= 1e-15).all()
    assert softmax(seconds * 2, temperature) == pytest.approx(probabilities)
    twice = softmax(np.array([1.0, 2.0, np.inf]), 1.0)
    assert twice[0] / twice[1] == pytest.approx(np.e)
    assert twice[2] == 0.0
