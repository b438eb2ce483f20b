"""A search stops soon after it is asked to, and loses at most the search step that was running."""

from dataclasses import replace

import numpy as np
import pytest

from planner.cancel import Cancelled, CancelToken
from planner.errors import StowageError
from planner.memory import pack
from planner.plan import plan_to_json, validate
from planner.swap import METHODS, load_search, plan_swaps, search_swaps
from planner.swap.baselines.registry import BASELINES
from planner.swap.evict.cyclic_addresses import address_pass
from planner.swap.evict.cyclic_bytes import bytes_pass, clock_of
from planner.swap.methods.annealing.annealing_method import Annealing
from planner.swap.methods.candidate import Candidate, Evaluator
from planner.swap.schedule.base_orders import captured
from planner.swap.schedule.budget_feasibility import fitting_order, orders
from planner.swap.search.driver import SearchState
from planner.swap.search.inputs import make_problem
from tests.effort import EFFORT
from tests.swap.random_graphs import machine
from tests.swap.test_plans import layered

MACHINE = machine(1e9, 1.4e9, 0.0)


def problem(layers=24, stop=None, budget="40%"):
    graph = layered(layers)
    return make_problem(graph, MACHINE, budget, None, np.full(len(graph.ops), 3e-5), stop)[0]


class Counted:
    """A question that is answered with yes from the given time on that it is asked."""

    def __init__(self, yes_from):
        self.asked, self.yes_from = 0, yes_from

    def __call__(self):
        self.asked += 1
        return self.asked >= self.yes_from


def test_the_address_pass_returns_at_its_first_slot_once_the_flag_is_set():
    task = problem()
    one = bytes_pass(task, captured(task))
    task.stop.cancel()
    with pytest.raises(Cancelled):
        address_pass(one).draft(clock_of(task, one.order))
    used = np.flatnonzero(np.diff(one.uses.start))
    assert (one.eviction.cursor[used] == one.uses.start[used]).all(), "nothing has been used"


@pytest.mark.parametrize("name", ["on-demand", "lru-prefetch"])
def test_every_baseline_stops_and_comes_out_the_same_when_it_is_begun_again(name):
    expected = BASELINES[name](problem(budget="90%"))
    task = problem(budget="90%")
    task.stop.cancel()
    with pytest.raises(Cancelled):
        BASELINES[name](task)
    task.stop.clear()
    found = BASELINES[name](task)
    assert None not in (found, expected)
    assert plan_to_json(found) == plan_to_json(expected)


def test_packing_ends_before_its_next_placement():
    calls = Counted(3)
    random = np.random.default_rng(0)
    lower = random.integers(0, 50, 60)
    with pytest.raises(Cancelled):
        pack(lower, lower + random.integers(1, 20, 60), random.integers(1, 99, 60), stop=CancelToken(calls))
    assert calls.asked == 3


def test_a_proof_ends_between_its_facts():
    plan = plan_swaps(layered(4), MACHINE, "60%", seconds=np.full(len(layered(4).ops), 3e-5), time_limit=0)
    calls = Counted(2)
    with pytest.raises(Cancelled):
        validate(plan, layered(4), stop=CancelToken(calls))
    assert calls.asked == 2


# "auto" goes through the phases of every other method but the paper's
@pytest.mark.parametrize("method", METHODS if EFFORT > 1 else ["auto", "swapadvisor"])
def test_a_search_that_is_stopped_again_and_again_is_as_if_it_never_was(method):
    """Every piece of work is cut short once, at whatever moment, and begun again."""
    whole = SearchState(problem(12), method=method, seed=3)
    ask = Counted(10**9)
    search_state = SearchState(problem(12, stop=CancelToken(ask)), method=method, seed=3)
    random, stopped = np.random.default_rng(1), 0
    while not whole.done and whole.evaluations < 150:
        whole.step()
    while not search_state.done and search_state.evaluations < 150:
        ask.asked, ask.yes_from = 0, int(random.integers(1, 30))
        try:
            search_state.step()
        except Cancelled:
            stopped += 1
            ask.yes_from = 10**9
            search_state.problem.stop.clear()
            search_state.step()
    assert stopped > 1
    assert search_state.evaluations == whole.evaluations
    assert [replace(point, seconds=0.0) for point in search_state.history] == (
        [replace(point, seconds=0.0) for point in whole.history]
    )
    assert plan_to_json(search_state.plan()) == plan_to_json(whole.plan())


def test_once_it_is_cancelled_nothing_more_is_evaluated():
    graph = layered(60)
    search = search_swaps(
        graph, MACHINE, "40%", seconds=np.full(len(graph.ops), 3e-5), time_limit=None, evaluations=40, threads=1
    )
    search.wait()
    before = search.progress.evaluations
    for _ in range(5):
        search.resume(time_limit=None)
        search.cancel()
        search.wait()
    most = 8 * 3 * 5  # as many as one short turn each may have been done before the flag was seen
    assert search.progress.evaluations - before <= most
    assert search.progress.state == "cancelled"


def test_what_a_share_stands_for_is_found_out_by_the_search_of_a_large_graph():
    graph = layered(200)
    seconds = np.full(len(graph.ops), 3e-5)
    search = search_swaps(graph, MACHINE, "0.01%", seconds=seconds)
    with pytest.raises(StowageError, match="alone works on"):
        search.wait()
    assert search.progress.state == "failed"
    with pytest.raises(StowageError, match='"magic" is not a search method'):
        search_swaps(graph, MACHINE, "50%", seconds=seconds, method="magic")
    with pytest.raises(StowageError, match="is not a budget"):
        search_swaps(graph, MACHINE, "half", seconds=seconds)
    with pytest.raises(StowageError, match="alone works on"):  # which is found out at once where it is known
        search_swaps(graph, MACHINE, "0.01%", seconds=seconds)


def test_saving_while_it_runs_changes_nothing(tmp_path):
    graph = layered(12)
    seconds = np.full(len(graph.ops), 3e-5)
    options = {"seconds": seconds, "seed": 3, "time_limit": None, "evaluations": 100}
    expected = plan_to_json(search_swaps(graph, MACHINE, "40%", **options).wait())
    search = search_swaps(graph, MACHINE, "40%", **options)
    for _ in range(5):
        search.save(tmp_path / "search.json")
    assert plan_to_json(search.wait()) == expected
    assert load_search(tmp_path / "search.json", graph, MACHINE, seconds=seconds, evaluations=1).wait()


def test_the_result_of_a_pass_can_be_packed_twice():
    task = problem()
    evaluator = Evaluator(task)
    order = next(order for _, order in orders(task))
    evaluation = evaluator.try_one(Candidate(order, task.memory))
    once, again = evaluator.pack(evaluation), evaluator.pack(evaluation)
    assert (once.peak, once.offsets.tolist()) == (again.peak, again.offsets.tolist())


def test_the_first_order_that_fits_is_the_last_that_is_made():
    ask = Counted(10**9)
    task = problem(stop=CancelToken(ask))
    ask.asked, ask.yes_from = 0, 2  # it is asked before each order is made
    assert (fitting_order(task) == captured(task)).all()


def test_limits_that_are_none_are_refused_for_plans_too():
    graph = layered(4)
    for limit in (-1, float("nan")):
        with pytest.raises(StowageError, match=f"the time limit must be 0 or more, got {limit}"):
            plan_swaps(graph, MACHINE, "60%", time_limit=limit)


def test_the_search_of_the_paper_ends_by_itself():
    graph = layered(3)
    plan = plan_swaps(graph, MACHINE, "70%", seconds=np.full(len(graph.ops), 3e-5), method="swapadvisor")
    assert validate(plan, graph) == []


def test_a_host_budget_of_nothing_is_called_by_its_name_and_the_one_named_is_enough_for_every_seed():
    graph = layered(4)
    seconds = np.full(len(graph.ops), 3e-5)
    with pytest.raises(StowageError, match="a host budget of 0 leaves no memory"):
        plan_swaps(graph, MACHINE, "40%", seconds=seconds, host_budget=0)
    with pytest.raises(StowageError, match="allow at least") as refused:
        plan_swaps(graph, MACHINE, "40%", seconds=seconds, host_budget=1, seed=1, time_limit=0)
    named = int(str(refused.value).split("allow at least ")[1].split()[0])
    for seed in (1, 2, 3):
        plan = plan_swaps(graph, MACHINE, "40%", seconds=seconds, host_budget=named, seed=seed, time_limit=0)
        assert plan.host_bytes <= named


def test_annealing_that_is_cancelled_stays_where_it_was():
    task = problem(8)
    search_state = SearchState(task, method="swap", seed=1)
    while search_state.best is None or len(search_state.baselines) < len(BASELINES):
        search_state.step()
    annealing, untouched = (Annealing(search_state.families[0].context()) for _ in range(2))
    annealing.search_step(), untouched.search_step()
    before = annealing.state_dict()
    task.stop.cancel()
    with pytest.raises(Cancelled):
        annealing.search_step()
    task.stop.clear()
    assert annealing.state_dict() == before == untouched.state_dict()
    annealing.search_step(), untouched.search_step()
    assert annealing.state_dict() == untouched.state_dict()
