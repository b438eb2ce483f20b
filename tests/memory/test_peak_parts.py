from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.graph import Graph, storage_lines
from planner.memory import lifetimes, peak_lines, peak_storages
from tests.memory.graphs import random_graph


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_the_lines_hold_what_is_alive_at_the_peak(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(seed)
    lines = [f"model.py:{rng.integers(4)}" if rng.random() < 0.8 else "" for _ in graph.ops]
    graph = replace(graph, ops=tuple(replace(op, source=line) for op, line in zip(graph.ops, lines, strict=True)))
    found = peak_lines(graph)
    assert sum(found.values()) == lifetimes(graph).live_bytes.max()
    assert sum(storage.bytes for storage in peak_storages(graph)) == lifetimes(graph).live_bytes.max()
    everything = Counter()
    for storage, line in zip(graph.storages, storage_lines(graph), strict=True):
        everything[line] += storage.bytes
    assert all(0 < size <= everything[line] for line, size in found.items())


def test_a_step_without_ops_holds_nothing():
    assert peak_lines(Graph("empty", (), (), ())) == {}
    assert peak_storages(Graph("empty", (), (), ())) == ()
