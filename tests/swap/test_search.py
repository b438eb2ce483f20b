"""A search is begun, watched, stopped, gone on with and kept; what it returns follows from its seed."""

import hashlib
import json
import os
import threading
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, process_time, sleep

import numpy as np
import pytest

from planner.errors import StowageError
from planner.graph import GraphBuilder, Kind
from planner.memory import lifetimes
from planner.plan import plan_to_json, validate
from planner.swap import METHODS, load_search, plan_with_baselines, search_swaps
from tests.effort import EFFORT
from tests.swap.random_graphs import machine
from tests.swap.test_plans import layered


def request(layers=24, budget="40%", method="swap", **options):
    """A search that has something to look for: the link is slow."""
    graph = layered(layers)
    return graph, search_swaps(
        graph, machine(1e9, 1.4e9, 0.0), budget, seconds=np.full(len(graph.ops), 3e-5), method=method, **options
    )


def test_it_returns_at_once_and_ends_with_a_valid_plan_no_slower_than_any_baseline():
    graph, search = request(layers=16)
    plan = search.wait()
    assert validate(plan, graph) == []
    assert search.best is plan
    progress = search.progress
    assert progress.state == "done"
    assert progress.step_seconds == plan.predicted.seconds >= progress.bound_seconds >= progress.ideal_seconds
    assert all(seconds is None or plan.predicted.seconds <= seconds for seconds in search.baselines.values())
    steps = [point.step_seconds for point in search.history]
    assert steps == sorted(steps, reverse=True)
    assert steps[-1] == plan.predicted.seconds
    assert [point.evaluations for point in search.history] == sorted(point.evaluations for point in search.history)


def test_every_best_plan_on_the_way_is_valid():
    graph, search = request(layers=12, time_limit=None)
    seen = []
    while search.progress.state == "running":
        if search.best is not None and (not seen or search.best is not seen[-1]):
            seen.append(search.best)
        sleep(0.001)
    assert seen
    assert all(validate(plan, graph) == [] for plan in seen)


@pytest.mark.parametrize("method", ["swap", "joint", "auto", "swapadvisor"])
def test_the_same_seed_and_evaluations_give_the_same_plan_whatever_the_threads(method):
    plans = []
    for threads in (1, 3):
        _, search = request(layers=12, method=method, seed=5, evaluations=150, time_limit=None, threads=threads)
        plans.append(plan_to_json(search.wait()))
        assert search.progress.state in {"paused", "done"}
    assert plans[0] == plans[1]


@pytest.mark.parametrize("method", ["auto", "swap", "swapadvisor"])
def test_a_search_that_was_stopped_and_gone_on_with_is_as_if_it_never_stopped(method, tmp_path):
    options = {"method": method, "seed": 3, "time_limit": None, "layers": 8}
    graph, whole = request(evaluations=400, **options)
    expected = plan_to_json(whole.wait())
    _, parts = request(evaluations=130, **options)
    parts.wait()
    left = 400 - parts.progress.evaluations
    parts.save(tmp_path / "search.json")
    parts.resume(time_limit=None, evaluations=left)
    assert plan_to_json(parts.wait()) == expected
    loaded = load_search(
        tmp_path / "search.json", graph, machine(1e9, 1.4e9, 0.0), seconds=np.full(len(graph.ops), 3e-5),
        time_limit=None, evaluations=left,
    )  # fmt: skip
    assert plan_to_json(loaded.wait()) == expected
    assert loaded.progress.evaluations == parts.progress.evaluations == whole.progress.evaluations


def test_the_middle_of_the_local_search_can_be_kept(tmp_path):
    options = {"method": "swap", "seed": 3, "time_limit": None}
    graph, whole = request(evaluations=440, **options)
    expected = plan_to_json(whole.wait())
    _, parts = request(evaluations=300, **options)
    parts.wait()
    assert parts.progress.doing == "improving the best plans"
    parts.save(tmp_path / "search.json")
    loaded = load_search(
        tmp_path / "search.json", graph, machine(1e9, 1.4e9, 0.0), seconds=np.full(len(graph.ops), 3e-5),
        time_limit=None, evaluations=440 - parts.progress.evaluations,
    )  # fmt: skip
    assert plan_to_json(loaded.wait()) == expected
    assert loaded.progress.evaluations == whole.progress.evaluations


def test_a_host_budget_that_was_too_small_still_is_when_the_search_is_loaded(tmp_path):
    graph, search = request(layers=3, host_budget=1)
    with pytest.raises(StowageError) as first:
        search.wait()
    search.save(tmp_path / "search.json")
    loaded = load_search(
        tmp_path / "search.json", graph, machine(1e9, 1.4e9, 0.0), seconds=np.full(len(graph.ops), 3e-5)
    )
    with pytest.raises(StowageError) as again:
        loaded.wait()
    assert str(again.value) == str(first.value)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_ends_where_no_plan_keeps_to_the_host_budget(method):
    _, search = request(layers=3, method=method, host_budget=1, time_limit=0)
    refusal = "no plan that copies nothing was found" if method == "recompute" else "a host budget of 1 B is too small"
    with pytest.raises(StowageError, match=refusal):
        search.wait(120)  # far more than it takes: that it ends is the point
    assert search.progress.state == "done"


def test_cancelling_takes_effect_within_a_second_and_twice_is_once():
    _, search = request(method="swapadvisor", time_limit=None)  # this one has no end of its own
    while search.best is None:
        sleep(0.01)
    begin = process_time()  # other programs may keep it from the cores
    search.cancel()
    search.cancel()
    plan = search.wait()
    assert process_time() - begin < 1.0
    assert plan is search.best
    assert search.progress.state == "cancelled"
    evaluations = search.progress.evaluations
    search.resume(time_limit=None, evaluations=50)
    search.wait()
    assert search.progress.evaluations >= evaluations + 50


def test_cancelled_at_once_there_is_a_plan_or_a_sentence_and_it_can_be_resumed():
    graph, search = request(layers=120)
    search.cancel()
    sentence = ""
    try:
        assert validate(search.wait(), graph) == []
    except StowageError as error:
        sentence = str(error)
    assert not sentence or "stopped before it had any plan" in sentence
    search.resume(time_limit=1)
    assert validate(search.wait(), graph) == []


def test_a_time_limit_of_nothing_still_gives_a_plan():
    graph, search = request(time_limit=0)
    assert validate(search.wait(), graph) == []
    assert search.progress.state in {"paused", "done"}
    with pytest.raises(StowageError, match="the time limit must be 0 or more, got -1"):
        search.resume(time_limit=-1)
    with pytest.raises(StowageError, match="the time limit must be 0 or more, got nan"):
        search.resume(time_limit=float("nan"))


def test_a_dropped_search_leaves_no_thread_behind():
    before = threading.active_count()
    _, search = request(method="swapadvisor", time_limit=None)
    while search.best is None:
        sleep(0.01)
    del search
    deadline = monotonic() + 120
    while threading.active_count() > before and monotonic() < deadline:
        sleep(0.02)
    assert threading.active_count() == before


def test_progress_is_cheap_to_read():
    _, search = request(method="swapadvisor", time_limit=None)
    begin = process_time()
    for _ in range(1000):
        assert search.progress.share <= 1.0
    assert process_time() - begin < 5  # far more than it takes: that it never waits for a turn is the point
    search.cancel()


def test_a_wait_as_long_as_ever_is_one_and_a_short_one_says_that_there_is_no_plan_yet():
    _, search = request(layers=120, evaluations=60, time_limit=None)
    with pytest.raises(StowageError, match=r"no plan yet after .* wait a little longer"):
        search.wait(0)
    assert search.wait(float("inf")) is search.best


def test_a_seed_and_threads_that_are_none_are_refused():
    with pytest.raises(StowageError, match="seed must be a whole number of 0 or more, got -1"):
        request(seed=-1)
    with pytest.raises(StowageError, match="threads must be 1 or more, or None for all cores, got -1"):
        request(threads=-1)


def test_many_who_resume_at_a_time_begin_one_search():
    _, search = request(method="swapadvisor", evaluations=1, time_limit=None, threads=1)
    search.wait()
    before = threading.active_count()
    callers = [threading.Thread(target=search.resume, kwargs={"time_limit": None}) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert [thread.name for thread in threading.enumerate()].count("stowage-search") <= before
    assert search.progress.state == "running"
    search.cancel()
    search.wait()


def test_a_fork_says_that_the_search_is_elsewhere():
    _, search = request(method="swapadvisor", time_limit=None)
    while search.best is None:
        sleep(0.01)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = []
        for call in (search.wait, search.resume, lambda: search.save("never")):
            try:
                call()
            except StowageError as error:
                said.append("the process that began it" in str(error))
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert json.loads(os.read(reading, 1000)) == [True, True, True]
    search.cancel()
    search.wait()


@cache
def _file(evaluations):
    """A graph, and the file of a search for it."""
    graph, search = request(method="swap", evaluations=evaluations, time_limit=None)
    search.wait()
    with TemporaryDirectory() as folder:
        search.save(Path(folder) / "search.json")
        return graph, (Path(folder) / "search.json").read_text()


def saved(evaluations):
    """The same, with what is in the file."""
    graph, text = _file(evaluations)
    return graph, json.loads(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [("graph", ...), ("best", None), ("best", 99), ("best", -1), ("plans", []), ("families", None), ("families", []),
     ("stage", "first"), ("stage", 99), ("stage", -1), ("turns", -1), ("share", 2), ("methods", 4),
     ("seed", -1), ("seed", 1.5),
     ("host_budget", 1.5), ("budget", None), ("evaluations", "x"), ("seconds", []), ("least_host", None),
     ("baselines", None), ("baselines", {"a": 1.0}), ("history", [[]]), ("method", ["swap"]),
     ("method_state", 3), ("method_state", {})],
)  # fmt: skip
def test_a_file_with_a_right_checksum_is_not_believed_either(tmp_path, name, value):
    path = tmp_path / "search.json"
    graph, body = saved(300)
    del body["checksum"]
    part = body["families"][0] if name in body["families"][0] and name not in body else body
    del part[name]
    if value is not ...:
        part[name] = value
    checksum = hashlib.sha256(json.dumps(body, separators=(",", ":"), sort_keys=True).encode()).hexdigest()[:32]
    path.write_text(json.dumps({"checksum": checksum, **body}))
    with pytest.raises(StowageError):
        load_search(path, graph, machine(1e9, 1.4e9, 0.0), seconds=np.full(len(graph.ops), 3e-5))


def test_a_search_for_another_graph_machine_or_times_is_not_gone_on_with(tmp_path):
    path = tmp_path / "search.json"
    graph, body = saved(60)
    path.write_text(json.dumps(body))
    here, times = machine(1e9, 1.4e9, 0.0), np.full(len(graph.ops), 3e-5)
    assert load_search(path, graph, here, seconds=times, evaluations=1).wait()
    other = layered(7)
    with pytest.raises(StowageError, match="a search for another graph"):
        load_search(path, other, here, seconds=np.full(len(other.ops), 3e-5))
    with pytest.raises(StowageError, match="with other op times"):
        load_search(path, graph, here, seconds=2 * times)
    with pytest.raises(StowageError, match="with other op times"):
        load_search(path, graph, machine(2e9, 3e9, 0.0), seconds=times)


@pytest.mark.parametrize("change", ["cut", "evaluations", "version", "format", "best"])
def test_a_damaged_search_is_refused(tmp_path, change):
    path = tmp_path / "search.json"
    graph, body = saved(60)
    path.write_text(json.dumps(body))
    if change == "cut":
        path.write_text(path.read_text()[:-20])
    else:
        body[change] = {"evaluations": 1, "version": 99, "format": "plan", "best": None}[change]
        path.write_text(json.dumps(body))
    with pytest.raises(StowageError, match=r"begin a new|give the file of a search"):
        load_search(path, graph, machine(1e9, 1.4e9, 0.0), seconds=np.full(len(graph.ops), 3e-5))


def test_what_cannot_be_is_said_before_anything_runs():
    with pytest.raises(StowageError, match='"magic" is not a search method'):
        request(method="magic")
    with pytest.raises(StowageError, match="alone works on"):
        request(budget=1000)
    before = threading.active_count()
    with pytest.raises(StowageError):
        request(budget=0)
    assert threading.active_count() == before


def test_a_host_budget_is_never_exceeded():
    graph, search = request(layers=3)
    free = search.wait()
    _, tight = request(layers=3, host_budget=free.host_bytes - 1)
    sentence = ""
    try:
        plan = tight.wait()
        assert plan.host_bytes < free.host_bytes
        assert validate(plan, graph) == []
    except StowageError as error:
        sentence = str(error)
    assert not sentence or "of host memory" in sentence
    _, none = request(layers=3, host_budget=1)
    with pytest.raises(StowageError, match="a host budget of 1 B is too small"):
        none.wait()


def test_without_anything_to_swap_nothing_is_looked_for():
    b = GraphBuilder("temporary")
    previous = b.add_tensor("x", b.add_storage("x", 256, Kind.INPUT), (64,))
    for i in range(5):
        value = b.add_tensor(f"y{i}", b.add_storage(f"y{i}", 256, Kind.ACTIVATION), (64,))
        b.add_op(f"op{i}", "aten.op.default", [previous], [value])
        previous = value
    graph = b.build([previous])
    plan = search_swaps(graph, machine(), 512, seconds=np.ones(5)).wait()
    assert (plan.swap_outs, plan.method) == ((), "resident")


def test_one_op_is_a_step():
    b = GraphBuilder("one")
    y = b.add_tensor("y", b.add_storage("y", 64, Kind.OUTPUT), (16,))
    b.add_op("op", "aten.op.default", [], [y])
    graph = b.build([y])
    assert search_swaps(graph, machine(), 64, seconds=np.ones(1)).wait().predicted.seconds == 1


def test_a_huge_graph_gets_a_plan():
    graph = layered(2_600 * EFFORT, size=4096, parameters=4096)
    assert len(graph.ops) > 10_000 * EFFORT  # which is not laid out at once
    budget = int(0.95 * lifetimes(graph).peak_bytes)
    search = search_swaps(graph, machine(), budget, seconds=np.full(len(graph.ops), 3e-6), time_limit=0)
    plan = search.wait()
    assert plan.swap_outs
    assert plan.peak_bytes <= budget


def test_planning_beside_baselines_finds_what_a_search_finds():
    graph, search = request(layers=10, seed=2, time_limit=None)
    found = plan_with_baselines(
        graph, machine(1e9, 1.4e9, 0.0), "40%", seconds=np.full(len(graph.ops), 3e-5), method="swap", seed=2
    )
    assert plan_to_json(found.plan) == plan_to_json(search.wait())
    assert found.evaluations == search.progress.evaluations


def test_what_is_no_graph_or_no_machine_is_refused_with_what_to_pass():
    graph = layered(3)
    with pytest.raises(StowageError, match=r"planner\.capture\(step\)"):
        search_swaps("mlp", machine(1e9, 1.4e9, 0.0), "40%")
    with pytest.raises(StowageError, match=r"planner\.machine"):
        search_swaps(graph, "v100-16gb", "40%")


def test_a_search_and_its_plan_show_themselves_in_one_line():
    _, search = request(evaluations=20)
    plan = search.wait()
    for shown in (repr(search), repr(plan), repr(plan.predicted)):
        assert len(shown) < 200
        assert "\n" not in shown
    assert f"{plan.predicted.seconds:.4g} s" in repr(search)
