"""What the baselines are, and that the search beats them."""

from functools import cache
from itertools import pairwise
from math import prod

import pytest

from planner.capture import capture
from planner.errors import StowageError
from planner.graph import GraphBuilder, Kind
from planner.partition import Partial, Replicated, Split, coarsen, recurse
from planner.partition.baselines import (
    BASELINES,
    all_row,
    baselines,
    data_parallel,
    equal_chop,
    spartan,
    without_reductions,
)
from planner.zoo import load
from tests.effort import EFFORT
from tests.partition.residual import residual

MODELS = [
    "mlp:batch=64,optimizer=adam",
    "gpt:layers=2",
    "rnn:layers=2,steps=5",
    "residual",
    *(["wresnet:batch=8"] if EFFORT > 1 else []),
]
WORKERS = [2, 8] if EFFORT > 1 else [8]  # the more levels the more can differ


@pytest.fixture(scope="module", params=MODELS)
def coarse(request):
    return coarsen(capture(residual() if request.param == "residual" else load(request.param)))


@pytest.fixture(scope="module")
def ours(coarse):
    """What the search finds, by the number of workers."""
    return cache(lambda workers: recurse(coarse, workers))


@pytest.fixture(scope="module")
def theirs(coarse):
    """The baselines, by the number of workers."""
    return cache(lambda workers: baselines(coarse, workers))


def storage_of(coarse, tensor):
    return coarse.graph.storages[coarse.graph.tensors[tensor].storage]


@pytest.mark.parametrize("workers", WORKERS)
def test_the_search_moves_no_more_than_any_baseline_that_splits_as_much(ours, theirs, workers):
    for name, found in theirs(workers).items():
        assert found is not None
        assert found.workers == workers
        if name != "data-parallel":  # which keeps a copy of all parameters on every worker
            assert ours(workers).bytes_moved <= found.bytes_moved * (1 + 1e-9), name


@pytest.mark.parametrize("workers", [2, 4, 8])
def test_data_parallelism_reduces_every_gradient_on_all_workers(workers):
    coarse = coarsen(capture(load("mlp:batch=512")))
    graph = coarse.graph
    found = data_parallel(coarse, workers)
    for tensor in graph.tensors:
        if storage_of(coarse, tensor.id).kind is Kind.PARAMETER:
            assert set(found.tensor_states(tensor.id)) == {Replicated()}
    for tensor in graph.tensors:
        kind = storage_of(coarse, tensor.id).kind
        if kind in (Kind.INPUT, Kind.ACTIVATION) and tensor.base < 0 and 512 in tensor.shape:
            assert {state.dimension for state in found.tensor_states(tensor.id)} == {0}
    parameters = sum(storage.bytes for storage in graph.storages if storage.kind is Kind.PARAMETER)
    assert found.bytes_moved == pytest.approx(2 * (workers - 1) * parameters, rel=1e-3)


@pytest.mark.parametrize("steps", [3, 12])
def test_data_parallelism_splits_the_batch_wherever_it_is(steps):
    coarse = coarsen(capture(load(f"rnn:layers=1,steps={steps},batch=16,hidden=32")))
    found = data_parallel(coarse, 4)
    inputs = [t for t in coarse.graph.tensors if t.base < 0 and storage_of(coarse, t.id).kind is Kind.INPUT]
    assert {tuple(t.shape) for t in inputs} == {(steps, 16, 32), (steps, 16)}
    for tensor in inputs:  # steps are the first dimension, samples the second
        assert {state.dimension for state in found.tensor_states(tensor.id)} == {1}
    parameters = sum(s.bytes for s in coarse.graph.storages if s.kind is Kind.PARAMETER)
    # gradients are added up over the steps, then reduced once
    assert found.bytes_moved == pytest.approx(2 * 3 * parameters, rel=1e-2)


def test_data_parallelism_splits_samples_and_not_the_words_of_each():
    coarse = coarsen(capture(load("gpt:layers=1,hidden=64,heads=2,sequence=32,vocabulary=50,batch=8")))
    found = data_parallel(coarse, 2)
    inputs = [t for t in coarse.graph.tensors if t.base < 0 and storage_of(coarse, t.id).kind is Kind.INPUT]
    for tensor in inputs:
        assert tensor.shape == (8, 32)
        assert {state.dimension for state in found.tensor_states(tensor.id)} == {0}
    parameters = sum(s.bytes for s in coarse.graph.storages if s.kind is Kind.PARAMETER)
    assert found.bytes_moved == pytest.approx(2 * parameters, rel=1e-2)


@pytest.mark.parametrize("workers", WORKERS)
def test_only_data_parallelism_keeps_copies_of_parameters(coarse, theirs, workers):
    persistent = {s.id for s in coarse.graph.storages if s.persistent and s.bytes >= 4096}
    for name, found in theirs(workers).items():
        for tensor in coarse.graph.tensors:
            if tensor.storage in persistent and tensor.base < 0 and max(tensor.shape, default=1) >= workers:
                whole = all(state == Replicated() for state in found.tensor_states(tensor.id))
                assert whole == (name == "data-parallel"), (name, tensor.name)


def test_rows_are_the_first_dimension_of_weights_and_of_what_they_make():
    coarse = coarsen(capture(load("mlp")))
    found = all_row(coarse, 4)
    sizes = {tensor.id: prod(tensor.shape) for tensor in coarse.graph.tensors if tensor.base < 0}
    rows = sum(
        sizes[t] for t in sizes if any(isinstance(s, Split) and s.dimension == 0 for s in found.tensor_states(t))
    )
    assert rows > 0.99 * sum(sizes.values())
    weights = [t for t in coarse.graph.tensors if t.name.endswith(".weight") and t.base < 0]
    assert all(found.tensor_states(weight.id)[0].dimension == 0 for weight in weights)


@pytest.mark.parametrize("method", [all_row, spartan, equal_chop])
def test_tensors_are_cut_once(coarse, method):
    found = method(coarse, 8)
    assert [level.workers for level in found.levels] == [8]


def test_partial_results_are_never_reduced(coarse, ours):
    found = without_reductions(coarse, 8)
    for op in coarse.graph.ops:
        for variant in found.op_variants(op.id):
            assert not any(isinstance(state, Partial) for state in variant.states[len(op.inputs) :])
    assert found.bytes_moved > ours(8).bytes_moved


def products(*widths):
    """A chain of matrix products: 256 rows times weights from width to width."""
    build = GraphBuilder("products")

    def matrix(name, shape, kind):
        return build.add_tensor(name, build.add_storage(name, 4 * prod(shape), kind), shape)

    read = matrix("x", (256, widths[0]), Kind.INPUT)
    for number, (rows, columns) in enumerate(pairwise(widths)):
        weight = matrix(f"w{number}", (rows, columns), Kind.PARAMETER)
        made = matrix(f"y{number}", (256, columns), Kind.ACTIVATION)
        build.add_op(f"mm{number}", "aten.mm.default", (read, weight), (made,), attributes="$0, $1")
        read = made
    return build.build()


def test_spartan_decides_for_the_largest_tensors_alone():
    # the last weight is by far the largest: with its rows or columns split, and nothing else decided, mm1 is free
    coarse = coarsen(products(16, 8192, 16))
    found, best = spartan(coarse, 4), equal_chop(coarse, 4)
    assert best.bytes_moved <= found.bytes_moved
    for tensor in coarse.graph.tensors:
        assert all(isinstance(state, Split) for state in found.tensor_states(tensor.id))


@pytest.mark.parametrize("name", BASELINES)
def test_one_worker_moves_nothing(name):
    coarse = coarsen(capture(load("mlp")))
    found = BASELINES[name](coarse, 1)
    assert (found.workers, found.bytes_moved) == (1, 0)


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("workers", [0, -2])
def test_no_workers_are_refused(name, workers):
    with pytest.raises(StowageError, match="workers must be a whole number, at least 1"):
        BASELINES[name](coarsen(capture(load("mlp"))), workers)


def test_a_batch_smaller_than_the_number_of_workers_is_not_split():
    coarse = coarsen(capture(load("mlp:batch=4")))
    with pytest.raises(StowageError, match="no batch of at least 8 to split"):
        data_parallel(coarse, 8)
    found = baselines(coarse, 8)
    assert found["data-parallel"] is None
    assert all(found[name] is not None for name in BASELINES if name != "data-parallel")
