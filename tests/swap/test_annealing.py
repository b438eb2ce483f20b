"""Annealing makes plans of other methods faster; its results follow from its seed and the number of search steps."""

import json
from concurrent.futures import ThreadPoolExecutor
from random import Random

import numpy as np
import pytest

from planner.memory import pack, step_peak
from planner.plan import plan_to_json, validate
from planner.swap.methods.annealing import Annealing
from planner.swap.methods.annealing.anneal import timed
from planner.swap.methods.annealing.decisions import annealing_arrays, decisions_of_plan
from planner.swap.methods.annealing.decode import blank_decode_buffers, decode
from planner.swap.methods.method import SearchContext
from planner.swap.problem.problem import build_problem
from planner.swap.search.driver import SearchState, one_by_one
from tests.effort import EFFORT
from tests.swap.event_simulator import step_seconds
from tests.swap.random_graphs import ALIGNMENT, build, least_budget, machine

_MACHINE = machine(1e9, 1.4e9, 1e-7)
_TAKEN_APART = 20 * EFFORT


def problem(number, layers=None):
    """A random step, its op times, and a budget that it does not fit into."""
    random = Random(number)
    graph = build(random, layers or random.randint(2, 8))
    seconds = np.array([random.choice([0.0, 1.0, 1.0, 2.0, 5.0]) * 1e-6 for _ in graph.ops])
    least = least_budget(graph)
    return build_problem(graph, _MACHINE, least + int(0.3 * max(0, step_peak(graph, ALIGNMENT) - least)), seconds)


def begun(task, plan, each=one_by_one, seed=3):
    """Annealing that begins with a plan and does not stop at any bound."""
    now = {"plan": plan}
    context = SearchContext(
        task, 0.0, seed, each, lambda: now["plan"].predicted.seconds, lambda: now["plan"]
    )  # fmt: skip
    return Annealing(context), now


def run_search_steps(annealing, now, count):
    """Up to so many turns; every plan on the way."""
    found = []
    for _ in range(count):
        search_step = annealing.search_step()
        if search_step is None:
            break
        if search_step.plan is not None:
            now["plan"] = search_step.plan
            found.append(search_step.plan)
    return found


def planned(task, method="calendar"):
    search_state = SearchState(task, method=method)
    while not search_state.done:
        search_state.step()
    return search_state.plan()


def texts(plans):
    return [plan_to_json(plan) for plan in plans]


@pytest.mark.parametrize("method", ["on-demand", "calendar"])
def test_every_plan_it_returns_is_valid_and_faster_than_the_one_before(method):
    better = 0
    for number in range(12 * EFFORT):
        task = problem(number)
        first = planned(task, method)
        annealing, now = begun(task, first)
        best = first.predicted.seconds
        for plan in run_search_steps(annealing, now, 4):
            assert validate(plan, task.graph) == [], number
            assert plan.peak_bytes <= task.budget
            assert plan.predicted.seconds < best
            exact = step_seconds(plan, task.graph, _MACHINE.host_link, task.seconds.tolist())
            assert plan.predicted.seconds == pytest.approx(exact), number
            best = plan.predicted.seconds
        better += best < first.predicted.seconds
    assert better > 0


def test_a_plan_whose_copies_go_as_soon_as_they_can_is_taken_apart_and_put_together_again_with_the_same_times():
    methods = []
    for number in range(_TAKEN_APART):
        task = problem(number)
        plan = planned(task)
        methods.append(plan.method)
        if plan.method != "calendar":
            continue
        buffers = blank_decode_buffers(task.ops, task.storages, len(task.arrays.touches.items))
        arrays, decisions = annealing_arrays(task), decisions_of_plan(task, plan)
        run = timed(arrays, decisions, buffers, decode(arrays, decisions, buffers))
        assert run.seconds == pytest.approx(plan.predicted.seconds), number
        assert buffers.live_bytes[: task.ops].max() <= task.memory, number
    assert methods.count("calendar") > _TAKEN_APART / 2


def test_the_same_seed_gives_the_same_plans_with_threads_or_without():
    task = problem(11, layers=8)
    plan = planned(task, "on-demand")
    alone = texts(run_search_steps(*begun(task, plan), 5))
    with ThreadPoolExecutor(3) as pool:
        together = texts(run_search_steps(*begun(task, plan, lambda work, items: list(pool.map(work, items))), 5))
    other = texts(run_search_steps(*begun(task, plan, seed=4), 5))
    assert alone
    assert alone == together != other


def test_it_goes_on_from_what_it_wrote_down_as_if_it_had_never_stopped():
    task = problem(11, layers=8)
    plan = planned(task, "on-demand")
    whole, now = begun(task, plan)
    run_search_steps(whole, now, 2)
    kept, middle = json.loads(json.dumps(whole.state_dict())), now["plan"]
    rest = texts(run_search_steps(whole, now, 6))
    again, now = begun(task, middle)
    again.load_state_dict(kept)
    assert texts(run_search_steps(again, now, 6)) == rest
    assert again.state_dict() == whole.state_dict()


def test_it_ends_when_nothing_gets_better_and_at_once_where_the_bound_is_met():
    task = problem(4)
    plan = planned(task)
    annealing, now = begun(task, plan)
    run_search_steps(annealing, now, 1000)
    assert annealing.search_step() is None
    seconds = plan.predicted.seconds
    met = SearchContext(task, seconds, 0, one_by_one, lambda: seconds, lambda: plan)
    assert Annealing(met).search_step() is None


def test_few_boxes_are_packed_as_low_as_can_be():
    for number in range(100 * EFFORT):
        random = Random(number)
        count = random.randint(3, 6)
        lower = [random.randint(0, 4) for _ in range(count)]
        upper = [start + random.randint(1, 3) for start in lower]
        sizes = [random.randint(1, 4) for _ in range(count)]
        assert pack(lower, upper, sizes).peak == _lowest(lower, upper, sizes), number


def _lowest(lower, upper, sizes):
    """The least height of all placements, by trying every offset of every box."""
    peak = max(sizes)
    while not _fit(lower, upper, sizes, peak, []):
        peak += 1
    return peak


def _fit(lower, upper, sizes, peak, offsets):
    box = len(offsets)
    if box == len(sizes):
        return True
    return any(
        all(
            lower[box] >= upper[other] or lower[other] >= upper[box]
            or at + sizes[box] <= offsets[other] or offsets[other] + sizes[other] <= at
            for other in range(box)
        )
        and _fit(lower, upper, sizes, peak, [*offsets, at])
        for at in range(peak - sizes[box] + 1)
    )  # fmt: skip
