"""Plans of searches are valid; a plan that is damaged in any way is not."""

import random
from dataclasses import replace

import pytest
import torch
from random_networks import random_step
from torch import nn

from planner.capture import capture
from planner.graph import GraphBuilder, Kind
from planner.partition import (
    BASELINES,
    AxisDivision,
    LinearDivision,
    Partial,
    PartitionPlan,
    Reduction,
    Replicated,
    Split,
    coarsen,
    optimize,
    recurse,
    splittable_ops,
    validate_partition,
)
from planner.step import TrainStep
from planner.zoo import load
from tests.partition.plan.corruptions import Damage
from tests.partition.search.every_choice import random_graph

SUM = Partial(Reduction.SUM)
GPT = "gpt:layers=1,hidden=48,sequence=12,vocabulary=60"


def plan_of(graph, workers):
    return PartitionPlan.of(recurse(coarsen(graph), workers))


@pytest.mark.parametrize(
    "model",
    [
        "mlp:layers=2,batch=12,hidden=24,optimizer=adamw",
        GPT,
        "rnn:steps=3,layers=1,hidden=16,batch=6",
        "wresnet:batch=2,image=32",
    ],
)  # fmt: skip
def test_partitions_of_the_zoo_are_valid(model):
    graph = capture(load(model))
    coarse = coarsen(graph)
    for workers in (5,) if model.startswith("wresnet") else (1, 2, 3, 6, 7, 8):
        plan = PartitionPlan.of(recurse(coarse, workers))
        assert validate_partition(plan, graph) == [], (model, workers)


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_views_of_the_same_elements_in_another_order_are_fetched_once(workers):
    coarse = coarsen(capture(load("rnn:layers=1,hidden=6,steps=3,batch=6,classes=4")))  # reads slices and transposes
    for method in (optimize, BASELINES["all-row"], BASELINES["icml18"]):
        assert validate_partition(PartitionPlan.of(method(coarse, workers)), coarse.graph) == [], method


@pytest.mark.parametrize("workers", [2, 3, 4, 5, 6])
def test_partitions_of_random_graphs_are_valid(workers):
    moved = 0
    for seed in range(56):
        graph = random_graph(random.Random(1000 * workers + seed))
        plan = plan_of(graph, workers)
        assert validate_partition(plan, graph) == [], (seed, graph.ops)
        moved += plan.bytes_moved > 0
    assert moved > 20


@pytest.mark.parametrize("seed", range(8))
def test_partitions_of_random_networks_are_valid(seed):
    graph = capture(random_step(seed))
    coarse = coarsen(graph)
    for workers in (2, 3, 4, 5, 6):
        plan = PartitionPlan.of(recurse(coarse, workers))
        assert validate_partition(plan, graph) == [], workers


@pytest.fixture(scope="module")
def damage():
    graph = capture(load(GPT))
    plan = plan_of(graph, [3, 2])
    assert validate_partition(plan, graph) == []
    return Damage(plan, graph)


def test_damage_of_every_kind_is_found(damage):
    kinds = damage.kinds()
    assert len(kinds) >= 60
    for kind, plan in kinds.items():
        found = validate_partition(plan, damage.graph)
        assert found, kind
        assert all(isinstance(sentence, str) and sentence for sentence in found)


def test_every_parameter_that_is_stored_otherwise_at_the_end_is_found(damage):
    graph, plan = damage.graph, damage.plan
    ends = {}
    for tensor in graph.tensors:
        if tensor.base < 0 and graph.storages[tensor.storage].persistent:
            ends.setdefault(tensor.storage, []).append(tensor.id)
    for first, *_, last in (versions for versions in ends.values() if len(versions) > 1):
        assert plan.tensors[first] == plan.tensors[last]
        wrong = Replicated() if isinstance(plan.tensors[first][1], Split) else SUM
        assert validate_partition(damage.state(last, wrong, level=1), graph)


def test_every_claimed_level_counts(damage):
    moved = damage.plan.bytes_per_level
    for level in range(2):
        for other in (moved[level] + 1, moved[level] - 1, 2 * moved[level], 0):
            changed = (*moved[:level], other, *moved[level + 1 :])
            (found,) = validate_partition(replace(damage.plan, bytes_per_level=changed), damage.graph)
            assert f"at level {level}" in found


def matrices(*ops, shapes, parameters=2):
    """A graph of ops (target, inputs, made shape, arguments), named by the number of their tensors."""
    build = GraphBuilder("matrices")
    for number, shape in enumerate(shapes):
        kind = Kind.PARAMETER if number < parameters else Kind.INPUT
        build.add_tensor(f"t{number}", build.add_storage(f"s{number}", 4 * torch.Size(shape).numel(), kind), shape)
    for target, inputs, shape, text in ops:
        storage = build.add_storage(f"s{len(build.storages)}", 4 * torch.Size(shape).numel(), Kind.ACTIVATION)
        made = build.add_tensor(f"t{len(build.tensors)}", storage, shape)
        build.add_op(f"op{len(build.ops)}", target, inputs, (made,), attributes=text)
    return build.build()


def total(model, batch):
    return model(batch).sum()


def plan_by_hand(graph, tensors, ops, moved=0):
    return PartitionPlan(
        plan_of(graph, 2).fingerprint, (2,), tuple((s,) for s in tensors), tuple((d,) for d in ops), (moved,)
    )


ROWS, COLUMNS = Split(0, 1, 8, 1), Split(1, 1, 8, 1)
MM = ("aten.mm.default", (0, 1), (8, 8), "$0, $1")


def axes(graph):
    return [[axis.name for axis in op.description.axes] for op in splittable_ops(graph)]


def test_rows_and_columns_and_partial_sums_of_a_product_by_hand():
    graph = matrices(MM, shapes=[(8, 8), (8, 8)])
    ((rows, columns, inner),) = axes(graph)
    free = [
        ((ROWS, Replicated(), ROWS), AxisDivision(rows, 1, 8, 1)),
        ((Replicated(), COLUMNS, COLUMNS), AxisDivision(columns, 1, 8, 1)),
        ((COLUMNS, ROWS, SUM), AxisDivision(inner, 1, 8, 1)),
        ((Replicated(), Replicated(), Replicated()), None),
    ]
    for states, division in free:
        assert validate_partition(plan_by_hand(graph, states, [division]), graph) == []
    size = 8 * 8 * 4
    paid = [
        ((ROWS, ROWS, ROWS), AxisDivision(rows, 1, 8, 1), size),  # the second factor is gathered
        ((COLUMNS, Replicated(), ROWS), AxisDivision(rows, 1, 8, 1), size // 2),  # half of the first is exchanged
        ((COLUMNS, ROWS, ROWS), AxisDivision(inner, 1, 8, 1), size),  # partial sums are reduced to chunks
        ((COLUMNS, ROWS, Replicated()), AxisDivision(inner, 1, 8, 1), 2 * size),  # and gathered
        ((ROWS, COLUMNS, COLUMNS), None, 2 * size),
    ]
    for states, division, moved in paid:
        assert validate_partition(plan_by_hand(graph, states, [division], moved), graph) == []
        assert validate_partition(plan_by_hand(graph, states, [division], moved + 4), graph)


def test_partial_sums_may_only_be_added_up():
    add = ("aten.add.Tensor", (2, 2), (8, 8), "$0, $1")
    relu = ("aten.relu.default", (2,), (8, 8), "$0")
    for op, valid in ((add, True), (relu, False)):
        graph = matrices(MM, op, shapes=[(8, 8), (8, 8)])
        inner = axes(graph)[0][2]
        divisions = [AxisDivision(inner, 1, 8, 1), LinearDivision(tuple(range(len(op[1]))))]
        plan = plan_by_hand(graph, (COLUMNS, ROWS, SUM, ROWS), divisions, 8 * 8 * 4)
        assert (validate_partition(plan, graph) == []) is valid


def test_a_sum_of_one_partial_and_one_whole_tensor_is_not_linear_in_the_partial_one():
    add = ("aten.add.Tensor", (2, 0), (8, 8), "$0, $1")
    graph = matrices(MM, add, shapes=[(8, 8), (8, 8)])
    inner = axes(graph)[0][2]
    divisions = [AxisDivision(inner, 1, 8, 1), LinearDivision((0,))]
    plan = plan_by_hand(graph, (COLUMNS, ROWS, SUM, ROWS), divisions, 8 * 8 * 4)
    (problem,) = validate_partition(plan, graph)
    assert "not linear" in problem


def test_the_place_of_the_largest_is_not_combined():
    network = nn.Sequential(nn.Conv2d(2, 2, 1), nn.MaxPool2d(3))
    graph = capture(TrainStep(network, torch.randn(4, 2, 9, 9), loss=total))
    op = next(op.id for op in graph.ops if op.target == "aten.max_pool2d_with_indices.default")
    plan = plan_of(graph, 2)
    damage = replace(plan, ops=(*plan.ops[:op], (AxisDivision("dy", 1, 3, 1),), *plan.ops[op + 1 :]))
    assert any("first_max" in problem for problem in validate_partition(damage, graph))


def test_rows_of_an_image_cannot_be_divided_in_strides():
    graph = capture(TrainStep(nn.Conv2d(2, 2, 3, padding=1), torch.randn(2, 2, 12, 12), loss=total))
    op = next(op.id for op in graph.ops if op.target == "aten.convolution.default")
    rows = next(name for name in axes(graph)[op] if name == "y0")
    plan = plan_of(graph, 2)
    damage = replace(plan, ops=(*plan.ops[:op], (AxisDivision(rows, 2, 6, 1),), *plan.ops[op + 1 :]))
    assert any("strides" in problem for problem in validate_partition(damage, graph))


def test_a_kernel_of_one_element_reads_no_halo():
    """What both gradients of the convolution read of the gradient is fetched once."""
    graph = capture(random_step(17))
    for workers in (5, 6):
        assert validate_partition(plan_of(graph, workers), graph) == []
