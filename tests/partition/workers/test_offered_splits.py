"""What is offered is what workers can compute: every way of splitting every described op, alone and at two levels."""

from itertools import combinations_with_replacement

import pytest
import torch
from divided_ops import assert_op_is_computed, division_by, op_cases
from tdl_cases import calls
from worker_comparison import assert_computes_the_same

from planner import SGD, AdamW
from planner import torch_private as private
from planner.capture import capture
from planner.errors import StowageError
from planner.partition import (
    KernelCall,
    PartitionPlan,
    Replicated,
    coarsen,
    conversion_bytes,
    recurse,
    search_partition,
    splittable_ops,
    strategies,
    validate_partition,
)
from planner.step import InferenceStep, TrainStep
from tests.capture.test_transformers import CASES
from tests.effort import EFFORT
from tests.partition.workers.conftest import ADAM, CONV, GPT, POOL, RNN


@pytest.fixture
def singles():
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)


def expected_bytes(case, strategy, workers):
    """What the search counts for an op whose inputs and results every worker has."""
    total = case.splittable.stage_bytes(strategy, workers)
    for tensor, give in zip(case.op.outputs, case.splittable.output_states(strategy), strict=True):
        made = case.graph.tensors[tensor]
        total += conversion_bytes(made.shape, give, Replicated(), workers, getattr(torch, made.dtype).itemsize)
    return total


def check(cases):
    """Compute every op in every way that is offered; returns the number of ways."""
    ways = 0
    for case in cases:
        strategies = case.splittable.strategies
        for strategy in strategies:
            for workers in (2, 3):
                if strategy.workers() >= workers:
                    moved = assert_op_is_computed(case, [division_by(strategy)], (workers,))
                    assert moved == expected_bytes(case, strategy, workers), (case.op.target, strategy.name)
                    ways += 1
        pairs = list(combinations_with_replacement(strategies, 2))
        for one, other in pairs[:: 1 if EFFORT > 1 else 5]:
            mesh = (2, 3) if one is not other else (2, 2)
            if one.workers() >= (2 if one is not other else 4) and other.workers() >= mesh[1]:
                assert_op_is_computed(case, [division_by(one), division_by(other)], mesh)
    return ways


@pytest.mark.parametrize("name", [ADAM, GPT, RNN, CONV, POOL])
def test_every_split_of_the_zoos_ops_is_computed(coarse_graphs, name):
    assert check(op_cases(coarse_graphs[name].graph)) > 20


@pytest.mark.parametrize("name", ["gpt2", "llama", "t5", "vit", "mixtral"] if EFFORT > 1 else ["t5", "vit"])
def test_every_split_of_the_ops_of_transformers_is_computed(singles, name):
    assert check(op_cases(capture(TrainStep(*CASES[name], optimizer=AdamW(1e-3)), progress=False))) > 100


class Called(torch.nn.Module):
    """Calls one kernel, with copies of what it changes."""

    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, *tensors):
        with torch.no_grad(), private.below_autograd():
            made = self.call.run(tensors)
        return tuple(value for value in made if value is not None)


def graphs_of_calls():
    """A graph for every small call of a described operator that has a kernel on a CPU, with its values."""
    for call in calls():
        kernel = call.target.split(".")[1]
        if kernel in ("alias", "detach") or (kernel.startswith("_scaled_dot_product") and "for_cpu" not in kernel):
            continue  # views; tests/partition/workers/test_kernels_of_gpus.py has kernels that only a GPU has
        batch = tuple(tensor.clone() for tensor in call.tensors)
        graph = capture(InferenceStep(Called(call), batch), progress=False)
        yield graph, dict(zip(graph.program.batch, call.tensors, strict=True))


def test_every_split_of_small_calls_in_awkward_shapes_is_computed(singles):
    ways = 0
    for graph, values in list(graphs_of_calls())[:: 1 if EFFORT > 1 else 7]:
        ways += check(op_cases(graph, values))
    assert ways > 300


def step_of(loss, *parts):
    torch.manual_seed(0)
    return TrainStep(torch.nn.Sequential(*parts), torch.randn(12, 6, 9, 9), loss=loss, optimizer=SGD(lr=0.1))


def squares(model, x):
    return model(x).square().mean()


@pytest.mark.parametrize(
    ("layer", "op", "axes"),
    [
        (lambda: torch.nn.Conv2d(6, 4, 3, padding=1), "convolution", {"d0", "d1"}),
        (lambda: torch.nn.ConvTranspose2d(6, 4, 3), "convolution", {"y0", "y1", "d0", "d1"}),
        (lambda: torch.nn.AvgPool2d(3, 1, 1, count_include_pad=False), "avg_pool2d", {"h", "w", "dy", "dx"}),
        (lambda: torch.nn.AvgPool2d(3), "avg_pool2d", {"dy", "dx"}),
    ],
)
def test_a_pin_of_what_workers_cannot_compute_is_refused_in_a_sentence(layer, op, axes):
    graph = capture(step_of(squares, torch.nn.Conv2d(6, 6, 1), layer()), progress=False)
    name = f"1/{op}"
    for axis in axes:
        search = search_partition(graph, 2, pins={name: axis}, evaluations=1)
        with pytest.raises(StowageError, match=f"{name} cannot be split by '{axis}'.*; choose one of n, .*everything"):
            search.wait(progress=False)


def test_groups_of_rows_are_not_divided(singles):
    description = KernelCall(
        "aten._grouped_mm.default", [torch.ones(8, 16), torch.ones(3, 16, 8), torch.tensor([2, 5, 8]).int()]
    )
    assert strategies(description.describe())  # it has a formula, which is not made of calls
    graph = capture(TrainStep(*CASES["mixtral"]), progress=False)
    grouped = [ops for op, ops in zip(graph.ops, splittable_ops(graph), strict=True) if "_grouped_mm" in op.target]
    assert grouped
    assert not any(op.strategies for op in grouped)


@pytest.mark.parametrize("workers", [2, 3, (2, 2)])
@pytest.mark.parametrize("name", ["amax", "amin", "prod"])
def test_what_is_combined_otherwise_than_by_a_sum_moves_what_is_counted(name, workers):
    def reduced(model, x):
        hidden = model(x)
        return (getattr(hidden.detach(), name)(0) * hidden).sum()

    layers = torch.nn.Flatten(), torch.nn.Linear(486, 12)
    coarse = coarsen(capture(step_of(reduced, *layers), progress=False))
    (merged,) = (each for each in coarse.merged if each.op.target.startswith(f"aten.{name}."))
    (variant,) = (each for each in merged.variants if each.name == "i0")
    plan = PartitionPlan.of(recurse(coarse, workers, allowed_variant=lambda m, way: m is not merged or way is variant))
    assert validate_partition(plan, coarse.graph) == []
    assert assert_computes_the_same(coarse.graph, plan) == plan.bytes_moved


def test_slices_are_written_wherever_they_are_stored():
    def shifted(model, x):
        hidden = model(x)
        made = hidden.new_zeros(hidden.shape[0], 12)
        made[:, 1:9] = hidden[:, :8]
        made[1:8:2, 2:5] += 1
        made[:, 0] = 2.0
        made[0:4, 1:5] = made[4:8, 3:7]
        return made.square().mean()

    step = step_of(shifted, torch.nn.Flatten(), torch.nn.Linear(486, 10))
    coarse = coarsen(capture(step, progress=False))
    for workers in (2, 3, (2, 2), (2, 3)):
        assert_computes_the_same(coarse.graph, PartitionPlan.of(recurse(coarse, workers)))


def test_an_op_that_makes_nothing_is_left_to_every_worker():
    step = step_of(lambda m, x: m(x).sum() + x[..., :0].clone().sum(), torch.nn.Conv2d(6, 4, 3))
    graph = capture(step, progress=False)
    assert any(0 in graph.tensors[op.outputs[0]].shape for op in graph.ops)
    assert_computes_the_same(graph, PartitionPlan.of(recurse(coarsen(graph), 2)))
