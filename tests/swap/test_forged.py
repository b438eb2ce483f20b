"""What a search's file says of orders, times and pools is believed only where kernels can work on it."""

import json

import numpy as np
import pytest

from planner.errors import StowageError
from planner.swap import load_search, search_swaps
from tests.swap.forging import write
from tests.swap.random_graphs import machine
from tests.swap.test_plans import layered

MACHINE = machine(1e9, 1.4e9, 0.0)
GRAPH = layered(10)
SECONDS = np.full(len(GRAPH.ops), 3e-5)
OPS, STORAGES = len(GRAPH.ops), len(GRAPH.storages)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What was saved in the middle of the paper's search, the local search and annealing."""
    found = {}
    for name, method, words in (
        ("genetic", "swapadvisor", "generation"),
        ("local", "swap", "improving the best plans"),
        ("polish", "swap", "improving the best plan itself"),
    ):
        search = search_swaps(
            GRAPH, MACHINE, "40%", seconds=SECONDS, method=method, time_limit=None, evaluations=100, threads=1
        )
        search.wait()
        while search.progress.doing != words and words != search.progress.doing.split()[0]:
            assert search.progress.state == "paused"
            search.resume(time_limit=None, evaluations=20)
            search.wait()
        path = tmp_path_factory.mktemp(name) / "search.json"
        search.save(path)
        found[name] = path.read_text()
    return found


def load(path):
    return load_search(path, GRAPH, MACHINE, seconds=SECONDS, time_limit=0)


@pytest.mark.parametrize("name", ["genetic", "local", "polish"])
def test_what_was_saved_is_believed(files, name, tmp_path):
    write(tmp_path / "search.json", json.loads(files[name]))
    assert load(tmp_path / "search.json").wait().peak_bytes > 0


ELITE, CHAIN = ("method_state", "elite", 0), ("method_state", "chains", 0)


@pytest.mark.parametrize(
    ("name", "where", "value"),
    [
        ("local", (*ELITE, "order"), [0] * OPS),
        ("local", (*ELITE, "order"), list(range(OPS))[::-1]),
        ("local", (*ELITE, "order"), list(range(OPS - 1))),
        ("local", (*ELITE, "order"), [float(op) for op in range(OPS)]),
        ("local", (*ELITE, "order"), [2**40] * OPS),
        ("local", (*ELITE, "memory"), 2**61),
        ("local", (*ELITE, "memory"), -64),
        ("local", (*ELITE, "lead"), -1.0),
        ("local", (*ELITE, "lead"), float("nan")),
        ("local", (*ELITE, "short_lived_slots"), -1),
        ("local", (*ELITE, "avoid_late_copies"), "yes"),
        ("local", (*ELITE, "clock"), [0.0]),
        ("local", (*ELITE, "clock"), [0.0] + [float("nan")] * OPS),
        ("local", (*ELITE, "clock"), [float(OPS - slot) for slot in range(OPS + 1)]),
        ("local", (*ELITE, "bias"), [1.0]),
        ("local", (*ELITE, "bias"), [0.0] * STORAGES),
        ("local", (*ELITE, "initial_residents"), [1] * STORAGES),
        ("local", (*ELITE, "initial_residents"), [True]),
        ("local", ("method_state", "rates"), [-1.0] * 8),
        ("local", ("method_state", "untried"), 10**6),
        ("local", ("method_state", "idle"), -5),
        ("polish", (*CHAIN, "decisions", "order"), [0] * OPS),
        ("polish", (*CHAIN, "decisions", "resident"), [STORAGES]),
        ("polish", (*CHAIN, "decisions", "resident"), [-1]),
        ("polish", (*CHAIN, "decisions", "reused_buffer"), [STORAGES] * OPS),
        ("polish", (*CHAIN, "decisions", "reused_buffer"), [0] * OPS),
        ("polish", (*CHAIN, "decisions", "rows"), [10**6]),
        ("polish", (*CHAIN, "decisions", "spans"), [1]),
        ("polish", (*CHAIN, "memory"), -1),
        ("polish", (*CHAIN, "rng_state"), 0),
        ("polish", (*CHAIN, "rng_state"), -1),
        ("polish", ("method_state", "search_steps"), -1),
        ("polish", ("method_state", "best", "order"), [0] * OPS),
        ("genetic", ("method_state", "population", "orders", 0), "AAAA"),
        ("genetic", ("method_state", "population", "individuals", 0, 0), -1),
        ("genetic", ("method_state", "population", "individuals", 0, 1), [7]),
        ("genetic", ("method_state", "population", "individuals", 0, 2), [0]),
        ("genetic", ("method_state", "population", "individuals", 0, 2, 0), 2**40),
        ("genetic", ("method_state", "population", "individuals", 0, 3), -1.0),
        ("genetic", ("method_state", "generation"), -1),
    ],
)  # fmt: skip
def test_what_kernels_could_not_work_on_is_damage(files, tmp_path, name, where, value):
    body = json.loads(files[name])
    part = body["families"][0]
    for step in where[:-1]:
        part = part[step]
    assert part[where[-1]] is not value
    part[where[-1]] = value
    write(tmp_path / "search.json", body)
    with pytest.raises(StowageError, match="is damaged"):
        load(tmp_path / "search.json")
