"""What a partition plan says of itself and of each worker's memory."""

from math import prod

import numpy as np
import pytest

from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Kind
from planner.partition import (
    AxisDivision,
    LinearDivision,
    Partial,
    PartitionPlan,
    Split,
    coarsen,
    recurse,
    stored_bytes,
    worker_chunks,
)
from planner.zoo import load


@pytest.fixture(scope="module", params=["mlp:batch=13,hidden=26,optimizer=adamw", "gpt:layers=1,hidden=48,sequence=12"])
def graph(request):
    return capture(load(request.param))


@pytest.fixture(scope="module")
def coarse(graph):
    return coarsen(graph)


def test_a_plan_says_what_the_search_chose(graph, coarse):
    found = recurse(coarse, 6)
    plan = PartitionPlan.of(found, method="recursion", seed=7)
    assert (plan.mesh, plan.workers, plan.method, plan.seed) == ((3, 2), 6, "recursion", 7)
    assert plan.bytes_moved == found.bytes_moved
    assert plan.bytes_per_level == tuple(level.bytes_moved for level in found.levels)
    assert all(type(moved) is int for moved in plan.bytes_per_level)
    for tensor in graph.tensors:
        assert plan.tensor_states(tensor.id) == found.tensor_states(tensor.id)
    for op in graph.ops:
        for division, variant in zip(plan.ops[op.id], found.op_variants(op.id), strict=True):
            if variant.strategy is None:
                assert division is None
            elif variant.strategy.axis is None:
                taken = [p for p, state in enumerate(variant.strategy.inputs) if isinstance(state, Partial)]
                assert division == LinearDivision(tuple(taken))
            else:
                assert isinstance(division, AxisDivision)
                assert (division.axis, division.size) == (variant.strategy.axis.name, variant.size)
                assert division.outer * division.size * division.inner == variant.strategy.axis.size


def test_a_plan_is_described_in_one_line(coarse):
    plan = PartitionPlan.of(recurse(coarse, 6))
    assert "6 workers (3 x 2)" in repr(plan)
    assert "received in a step" in repr(plan)
    assert "\n" not in repr(plan)
    assert "1 worker," in PartitionPlan.of(recurse(coarse, 1)).describe()


def test_places_count_every_worker_once(coarse):
    plan = PartitionPlan.of(recurse(coarse, 12))
    places = [plan.place(worker) for worker in range(12)]
    assert places == sorted(set(np.ndindex(*plan.mesh)))
    for worker in (-1, 12):
        with pytest.raises(StowageError, match="there is no worker"):
            plan.place(worker)


@pytest.mark.parametrize("workers", [2, 4, 5, 6, 7])
def test_workers_store_every_element_of_a_split_tensor_once(graph, coarse, workers):
    plan = PartitionPlan.of(recurse(coarse, workers))
    split = 0
    for tensor in graph.tensors:
        states = plan.tensors[tensor.id]
        if tensor.base >= 0 or not all(isinstance(state, Split) for state in states):
            continue
        held = np.zeros(tensor.shape, int)
        for worker in range(workers):
            own = np.ones(tensor.shape, bool)
            for state, (first, last) in worker_chunks(plan, tensor.id, worker).items():
                place = np.arange(tensor.shape[state.dimension]) // state.inner % state.size
                inside = (place >= first) & (place < last)
                own &= inside.reshape([-1 if d == state.dimension else 1 for d in range(len(tensor.shape))])
            assert own.any()
            held += own
        assert (held == 1).all()
        split += 1
    assert split > 10


@pytest.mark.parametrize("workers", [1, 3, 8])
def test_workers_together_store_what_one_would_and_copies_of_what_is_whole(graph, coarse, workers):
    plan = PartitionPlan.of(recurse(coarse, workers))
    together = sum(stored_bytes(plan, graph, worker) for worker in range(workers))
    expected = 0
    for storage in graph.storages:
        if storage.live_in:
            tensor = next(t for t in graph.tensors if t.storage == storage.id and t.base < 0)
            cut = prod(
                k for k, state in zip(plan.mesh, plan.tensors[tensor.id], strict=True) if isinstance(state, Split)
            )
            expected += storage.bytes * workers // cut
    assert together == expected
    parameters = sum(stored_bytes(plan, graph, worker, [Kind.PARAMETER]) for worker in range(workers))
    assert 0 < parameters < together


def test_memory_is_refused_for_another_graph_or_worker(graph, coarse):
    plan = PartitionPlan.of(recurse(coarse, 2))
    with pytest.raises(StowageError, match="another graph"):
        stored_bytes(plan, capture(load("mlp:layers=1,batch=3,hidden=5")), 0)
    with pytest.raises(StowageError, match="there is no worker 2: workers are numbered 0 to 1"):
        stored_bytes(plan, graph, 2)
