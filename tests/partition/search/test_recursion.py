"""The least bytes of one level, against every choice of a small graph, and the recursion, against closed forms."""

import random
from itertools import product
from math import prod

import pytest

from planner.capture import capture
from planner.errors import StowageError
from planner.graph import GraphBuilder, Kind
from planner.machine import prime_factors
from planner.partition import (
    Partial,
    PartitionPlan,
    Reduction,
    Replicated,
    Split,
    coarsen,
    conversion_bytes,
    optimize,
    recurse,
    validate_partition,
)
from planner.partition.search.costs.moved_bytes import spread_bytes
from planner.zoo import load
from tests.partition.search.every_choice import least_bytes_by_trying, random_graph


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_one_level_moves_the_least_bytes(workers):
    split = 0
    for seed in range(34):
        graph = random_graph(random.Random(100 * workers + seed))
        found = recurse(coarsen(graph), [workers])
        assert found.bytes_moved == least_bytes_by_trying(graph, [workers]), (seed, graph.ops)
        split += found.bytes_moved > 0
    assert split > 10


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_bytes_to_spread_a_tensor_are_those_of_its_regions(workers):
    shape = (5, 12, 7)
    states = [
        Replicated(), Partial(Reduction.SUM), Split(0, 1, 5, 1), Split(2, 1, 7, 1), Split(1, 1, 12, 1),
        Split(1, 1, 4, 3), Split(1, 4, 3, 1), Split(1, 2, 6, 1),
    ]  # fmt: skip
    for have, want in product(states, states):
        found, expected = spread_bytes(shape, 4, have, want, workers), conversion_bytes(shape, have, want, workers, 4)
        assert found == expected, (have, want)


def perceptron(batch, width):
    return capture(load(f"mlp:batch={batch},hidden={width}"))


@pytest.mark.parametrize("workers", [2, 3, 4, 6, 8])
def test_a_wide_batch_is_split_as_data_parallelism_with_split_weights_does(workers):
    graph = perceptron(4800, 48)
    weights = [
        t for t in graph.tensors if t.name.endswith("weight") and t.base < 0 and graph.storages[t.storage].persistent
    ]
    sizes = list({t.storage: prod(t.shape) for t in weights}.values())
    biases = {t.storage: prod(t.shape) for t in graph.tensors if t.name.endswith("bias") and t.base < 0}
    # gathered forward, gathered backward but for the first layer, gradients reduced to chunks; biases are read once
    closed = 4 * (workers - 1) * (3 * sum(sizes) - sizes[0] + 2 * sum(biases.values()))
    assert recurse(coarsen(graph), workers).bytes_moved == pytest.approx(closed, rel=1e-3)


@pytest.mark.parametrize(("batch", "width"), [(16, 512), (64, 512), (512, 512), (4096, 64)])
@pytest.mark.parametrize("workers", [2, 3, 8])
def test_columns_and_rows_of_weights_by_turns_move_no_less(batch, width, workers):
    graph = perceptron(batch, width)
    # of two layers, what is read by the first and the gradient of what the second makes are each gathered twice, what
    # the second makes and the gradient of what the first reads are reduced; the first layer of all has no such gradient
    large = (2 * 6 - 1) * batch * width
    small = 8 * batch * 10 + 4 * (4 * width + 10)  # of the classifier and biases
    assert 0 < recurse(coarsen(graph), workers).bytes_moved <= 4 * (workers - 1) * (large + small)


def test_parameters_gradients_and_results_of_updates_are_split_alike():
    graph = capture(load("mlp:optimizer=adamw"))
    found = recurse(coarsen(graph), 4)
    for tensor in graph.tensors:
        same = [other for other in graph.tensors if other.storage == tensor.storage and other.base < 0]
        if tensor.base < 0:
            assert all(found.tensor_states(other.id) == found.tensor_states(tensor.id) for other in same)
    by_name = {tensor.name: tensor.id for tensor in graph.tensors if tensor.base < 0}
    for layer in range(4):
        weight = found.tensor_states(by_name[f"layers.{layer}.weight"])
        assert weight == found.tensor_states(by_name[f"layers.{layer}.weight.grad"])
        assert all(isinstance(state, Split) for state in weight)


def chain(target, texts, in_place=False):
    """Ops one after another on a matrix of 16 rows and columns."""
    build = GraphBuilder("chain")
    storage = build.add_storage("s0", 1024, Kind.PARAMETER)
    tensor = build.add_tensor("t0", storage, (16, 16))
    for number, text in enumerate(texts):
        storage = storage if in_place else build.add_storage(f"s{number + 1}", 1024, Kind.ACTIVATION)
        made = build.add_tensor(f"t{number + 1}", storage, (16, 16))
        build.add_op(f"op{number}", target, (tensor,), (made,), attributes=text)
        tensor = made
    return build.build()


def test_each_level_moves_what_the_levels_before_have_left():
    found = recurse(coarsen(chain("aten.cumsum.default", ["$0, 1", "$0, 0"])), 8)
    # all three tensors are tied; half of what one op reads and of what it makes is moved, at every level
    assert [level.bytes_moved for level in found.levels] == [1024, 1024, 1024]


def test_an_update_that_nobody_describes_keeps_the_split_of_what_it_updates():
    coarse = coarsen(chain("aten.unheard_of_.default", ["$0"], in_place=True))
    assert len(coarse.groups) == 1
    (states,) = {recurse(coarse, 4).tensor_states(tensor) for tensor in (0, 1)}
    assert all(isinstance(state, Split) for state in states)


def test_time_steps_are_merged():
    few, many = (coarsen(capture(load(f"rnn:steps={steps},layers=1,hidden=16,batch=4"))) for steps in (3, 9))
    assert len(many.graph.ops) > 2 * len(few.graph.ops)
    assert len(many.merged) <= len(few.merged) + 6


@pytest.mark.parametrize("workers", [2, 3, 5, 6, 7, 64])
def test_any_number_of_workers(workers):
    graph = capture(load("gpt:layers=2,hidden=32,sequence=8"))
    found = recurse(coarsen(graph), workers)
    assert found.workers == workers
    for op in graph.ops:
        assert len(found.op_variants(op.id)) == len(prime_factors(workers))
    for level in found.levels:
        assert level.bytes_moved >= 0
    sizes = {tensor.id: prod(tensor.shape) for tensor in graph.tensors}
    largest = max(sizes, key=lambda tensor: sizes[tensor])
    assert any(isinstance(state, Split) for state in found.tensor_states(largest))


def test_levels_never_cut_an_atom_into_more_parts_than_it_has():
    coarse = coarsen(capture(load("gpt:layers=1,hidden=32,sequence=8")))
    found = recurse(coarse, 16)
    for number, group in enumerate(coarse.groups):
        for label, size in group.sizes.items():
            assert prod(level.workers for level in found.levels if level.labels[number] == label) <= size
    for number, merged in enumerate(coarse.merged):
        for variant in merged.variants:
            times = prod(level.workers for level in found.levels if level.variants[number] is variant)
            assert times <= variant.size


def test_one_worker_moves_nothing():
    found = recurse(coarsen(perceptron(8, 16)), 1)
    assert (found.levels, found.bytes_moved) == ((), 0)


@pytest.mark.parametrize("workers", [0, -2, 2.5, "8", [4, 1], [2, "2"], [2, 0.5]])
def test_impossible_workers_are_refused(workers):
    with pytest.raises(StowageError, match="workers"):
        recurse(coarsen(perceptron(8, 16)), workers)


def test_the_factors_of_a_large_prime_are_found_at_once():
    assert prime_factors(2 * 999_999_937) == (999_999_937, 2)


def test_groups_that_depend_on_each_other_too_much_are_fixed_one_by_one() -> None:
    coarse = coarsen(capture(load("brnn:layers=1,hidden=24,steps=3,batch=12"), progress=False))
    found = recurse(coarse, 2)  # a table of all combinations would have more than 10^9 numbers
    assert validate_partition(PartitionPlan.of(found), coarse.graph) == []
    bound = optimize(coarse, 2).bound
    assert bound is not None
    assert found.bytes_moved <= bound * 1.05
