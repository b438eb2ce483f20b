"""A search for partitions from outside: at once, better with time, cancelled, resumed, saved, within a memory limit."""

import json
from functools import cache
from math import prod

import pytest

import planner
from planner.errors import StowageError
from planner.graph import Graph, GraphBuilder, Kind
from planner.machine import PRESETS, usable_bytes
from planner.memory import step_peak
from planner.partition import (
    Replicated,
    load_partition_search,
    partition_from_json,
    partition_to_json,
    recurse,
    search_partition,
    worker_memory,
)

GPT = "gpt:layers=2,hidden=32,sequence=8"
MLP = "mlp:layers=2,hidden=64,batch=64"


@cache
def graph_of(spec: str) -> Graph:
    return planner.capture(planner.zoo.load(spec))


def test_a_search_returns_before_it_has_looked_at_the_graph() -> None:
    search = search_partition(graph_of(GPT), 4, time_limit=None)
    assert search.progress.evaluations == 0 or search.best is not None
    plan = search.wait(progress=False)
    assert search.progress.state == "done"
    assert search.best == plan
    assert plan.workers == 4
    assert planner.search_partition is search_partition


def test_the_recursion_comes_first_and_later_partitions_move_less() -> None:
    graph = graph_of(GPT)
    search = search_partition(graph, 8, time_limit=None, evaluations=6)
    search.wait(progress=False)
    moved = [point.bytes_moved for point in search.history]
    first = recurse(search.problem.coarse, 8).bytes_moved
    assert moved[0] == search.recursion[0] == pytest.approx(first)
    assert moved == sorted(set(moved), reverse=True)
    assert search.history[0].method == "recursion over 2 x 2 x 2"
    assert search.progress.bytes_moved == moved[-1] == search.best.bytes_moved


def test_solving_all_levels_at_once_certifies_how_good_the_partition_is() -> None:
    search = search_partition(graph_of(MLP), 4, time_limit=None, evaluations=2)
    plan = search.wait(progress=False)
    now = search.progress
    assert now.bound_bytes <= plan.bytes_moved <= search.recursion[0]
    assert now.gap_percent == pytest.approx(100 * (plan.bytes_moved / now.bound_bytes - 1))
    assert now.gap_percent <= 1


@pytest.mark.parametrize("evaluations", [1, 2])
def test_the_same_seed_and_evaluations_give_the_same_plan(evaluations: int) -> None:
    plans = []
    for _ in range(2):
        search = search_partition(graph_of(GPT), 4, seed=3, time_limit=None, evaluations=evaluations)
        plans.append(search.wait(progress=False))
        assert search.progress.evaluations == evaluations
    assert plans[0] == plans[1]


def test_a_cancelled_search_keeps_its_best_and_goes_on_where_it_stopped() -> None:
    search = search_partition(graph_of(MLP), 4, time_limit=None, evaluations=1)
    first = search.wait(progress=False)
    assert search.progress.state == "paused"
    search.resume(time_limit=None)
    search.cancel()
    kept = search.wait(progress=False)
    assert search.progress.state in ("cancelled", "done")
    assert kept.bytes_moved <= first.bytes_moved
    search.resume(time_limit=None)
    whole = search_partition(graph_of(MLP), 4, time_limit=None)
    assert search.wait(progress=False) == whole.wait(progress=False)
    assert search.progress.evaluations == whole.progress.evaluations


def test_a_saved_search_goes_on_as_if_it_had_never_stopped(tmp_path) -> None:
    graph, path = graph_of(MLP), tmp_path / "search.json"
    search = search_partition(graph, 4, memory="40%", time_limit=None, evaluations=2)
    search.wait(progress=False)
    search.save(path)
    loaded = load_partition_search(path, graph, time_limit=None)
    search.resume(time_limit=None)
    assert loaded.wait(progress=False) == search.wait(progress=False)
    assert loaded.progress.evaluations == search.progress.evaluations
    assert [point.method for point in loaded.history] == [point.method for point in search.history]


def test_a_file_that_is_no_saved_search_is_refused_in_a_sentence(tmp_path) -> None:
    graph, path = graph_of(MLP), tmp_path / "search.json"
    search = search_partition(graph, 2, time_limit=None)
    search.wait(progress=False)
    search.save(path)
    text = path.read_text()
    body = json.loads(text)
    with pytest.raises(StowageError, match="another graph"):
        load_partition_search(path, graph_of(GPT))
    with pytest.raises(StowageError, match="without a machine; leave `machine` out"):
        load_partition_search(path, graph, PRESETS["k80x8"])
    for wrong, reason in (
        (text[:-20], "breaks off"), ("[]", "lacks"), (json.dumps({**body, "version": 99}), "version '99'"),
        (json.dumps({**body, "seed": 7}), "changed after it was saved"),
    ):  # fmt: skip
        path.write_text(wrong)
        with pytest.raises(StowageError, match=reason):
            load_partition_search(path, graph)


def test_one_worker_moves_nothing() -> None:
    search = search_partition(graph_of(MLP), 1)
    plan = search.wait(progress=False)
    assert (plan.mesh, plan.bytes_moved, plan.workers) == ((), 0, 1)
    memory = search.solution.memory.most
    assert memory <= step_peak(graph_of(MLP)) < memory + 64 * len(graph_of(MLP).storages)


@pytest.mark.parametrize("workers", [7, 64])
def test_numbers_of_workers_that_dimensions_do_not_divide_by(workers: int) -> None:
    search = search_partition(graph_of(MLP), workers, time_limit=None, evaluations=3)
    assert search.wait(progress=False).workers == workers
    assert len(search.solution.memory.peak_bytes) == workers


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"workers": 0}, "at least 1, got 0"),
        ({"workers": 2.5}, "at least 1, got 2.5"),
        ({"workers": 10**6}, "too many"),
        ({"workers": 16, "machine": PRESETS["k80x8"]}, "too few for 16 workers"),
        ({"machine": "k80x8"}, "not a machine"),
        ({"memory": "much"}, "not a budget"),
        ({"memory": 0}, "leaves no memory"),
        ({"seed": -1}, "seed must be"),
        ({"pins": ["layers.0.weight"]}, "by name"),
        ({"time_limit": -1}, "time limit"),
    ],
)
def test_impossible_inputs_are_refused_at_once(words, reason: str) -> None:
    with pytest.raises(StowageError, match=reason):
        search_partition(graph_of(MLP), **words)
    with pytest.raises(StowageError, match=r"pass planner\.capture"):
        search_partition(planner.zoo.load(MLP))


def test_more_memory_buys_fewer_bytes_and_no_worker_takes_more_than_allowed() -> None:
    graph = graph_of(MLP)
    single, before = step_peak(graph), float("inf")
    for percent in (40, 80):
        search = search_partition(graph, 4, memory=f"{percent}%", time_limit=None)
        plan = search.wait(progress=False)
        assert max(worker_memory(graph, plan).peak_bytes) <= single * percent / 100
        assert plan.bytes_moved <= before
        before = plan.bytes_moved
    assert any(Replicated() in states for states in plan.tensors)


def test_a_limit_that_no_partition_meets_names_what_does_not_fit_and_the_least_that_would_do() -> None:
    graph = graph_of(MLP)
    with pytest.raises(StowageError, match=r"too little for each of 4 workers: .* the op \S+ needs") as raised:
        search_partition(graph, 4, memory=1000).wait(progress=False)
    least = int(str(raised.value).split("allow at least ")[1].split(" bytes")[0])
    rounded = str(raised.value).split(" bytes (")[1].split(")")[0]
    for enough in (least, rounded):
        assert search_partition(graph, 4, memory=enough, evaluations=1).wait(progress=False).bytes_moved > 0
    with pytest.raises(StowageError, match="too little"):
        search_partition(graph, 4, memory=least - 1).wait(progress=False)


def test_the_limit_can_be_changed_without_looking_at_the_graph_again() -> None:
    graph = graph_of(MLP)
    search = search_partition(graph, 4, memory=1, time_limit=None)
    with pytest.raises(StowageError, match="too little"):
        search.wait(progress=False)
    least = search.least_memory
    assert least is not None
    within = search.with_memory(least, time_limit=None)
    assert within.problem.coarse is search.problem.coarse
    assert worker_memory(graph, within.wait(progress=False)).most <= least


def test_a_plan_that_another_trial_has_proven_says_so() -> None:
    search = search_partition(graph_of("mlp"), 4, time_limit=None)
    plan = search.wait(progress=False)
    assert plan.method.startswith("recursion")
    assert plan.bound == search.progress.bound_bytes is not None
    assert plan.gap is not None
    assert partition_from_json(partition_to_json(plan)).bound == plan.bound


def test_copies_may_fit_where_splitting_all_that_can_be_split_does_not() -> None:
    graph = graph_of("mlp:layers=4,hidden=512,batch=64")
    split = search_partition(graph, 4, time_limit=None)
    split.wait(progress=False)
    assert split.solution is not None
    limit = split.solution.memory.most - 1
    plan = search_partition(graph, 4, memory=limit, time_limit=None).wait(progress=False)
    assert max(worker_memory(graph, plan).peak_bytes) <= limit


def test_a_machine_limits_memory_and_gives_slow_links_to_the_outer_levels() -> None:
    machine = planner.machine("h100x8:hosts=2")
    search = search_partition(graph_of(MLP), 16, machine, time_limit=None)
    search.wait(progress=False)
    assert search.problem.memory == usable_bytes(machine)
    assert search.problem.weights((2, 8))[0] > search.problem.weights((2, 8))[1] == 1
    assert all(prod(mesh) == 16 and 8 in {prod(mesh[level:]) for level in range(len(mesh))}
               for mesh in search.problem.other_meshes())  # fmt: skip


def test_the_front_of_bytes_against_memory_falls() -> None:
    search = search_partition(graph_of(MLP), 4)
    search.wait(progress=False)
    front = search.pareto(progress=False)
    assert len(front) > 1
    assert [point.peak_bytes for point in front] == sorted({point.peak_bytes for point in front})
    assert [point.bytes_moved for point in front] == sorted({point.bytes_moved for point in front}, reverse=True)
    for point in front:
        assert max(worker_memory(graph_of(MLP), point.plan).peak_bytes) == point.peak_bytes


def by_hand() -> Graph:
    """A weight of 3 rows, an activation that it makes, and what is made of that."""
    build = GraphBuilder("by hand")
    weight = build.add_tensor("weight", build.add_storage("weight", 4 * 3 * 8, Kind.PARAMETER), (3, 8))
    made = build.add_tensor("made", build.add_storage("made", 4 * 3 * 8, Kind.ACTIVATION), (3, 8))
    last = build.add_tensor("last", build.add_storage("last", 4 * 3 * 8, Kind.ACTIVATION), (3, 8))
    build.add_op("relu", "aten.relu.default", [weight], [made], attributes="$0")
    build.add_op("again", "aten.relu.default", [made], [last], attributes="$0")
    return build.build([last])


def test_memory_follows_the_uneven_chunks_of_each_worker() -> None:
    plan = search_partition(by_hand(), 2, pins={"weight": 0}, time_limit=None).wait(progress=False)
    memory = worker_memory(by_hand(), plan)
    # of 3 rows of 32 bytes the first worker has 1 and the second 2: of the weight, what is made, and what is made of it
    assert memory.persistent_bytes == (32, 64)
    assert memory.peak_bytes == (96, 192)
    assert by_hand().ops[memory.op].name == "again"
