"""Workers' graphs compute what the whole graph computes, and but for a few move the bytes of their plan."""

import pytest
import torch
from lockstep import run_step, value_of
from worker_comparison import assert_computes_the_same, live_in_values, on_one_device

from planner import SGD
from planner.capture import capture
from planner.partition import BASELINES, optimize, recurse, search_partition
from planner.partition.plan import PartitionPlan
from planner.partition.strategy import Split
from planner.partition.workers import worker_graph
from planner.step import TrainStep
from tests.effort import EFFORT, combinations
from tests.partition.workers.conftest import ADAM, CONV, GPT, MLP, POOL, RNN


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("step", [MLP, ADAM, GPT, RNN, CONV])
def test_what_the_recursion_finds(coarse_graphs, step, workers):
    coarse = coarse_graphs[step]
    plan = PartitionPlan.of(recurse(coarse, [workers]))
    assert any(isinstance(states[0], Split) for states in plan.tensors)
    assert assert_computes_the_same(coarse.graph, plan) == plan.bytes_moved > 0


@pytest.mark.parametrize(
    ("step", "method", "workers"),
    combinations([MLP, ADAM, GPT, RNN, CONV], ["data-parallel", "all-row", "icml18"], [2, 3]),
)
def test_the_papers_baselines(coarse_graphs, step, method, workers):
    coarse = coarse_graphs[step]
    plan = PartitionPlan.of(BASELINES[method](coarse, workers))
    counted = assert_computes_the_same(coarse.graph, plan)
    gathered_in_full = 576 if (step, method, workers) == (RNN, "all-row", 3) else 0  # a slice that one worker has
    assert counted == plan.bytes_moved + gathered_in_full


@pytest.mark.parametrize(
    ("step", "mesh"),
    [
        *combinations([MLP, ADAM, GPT, RNN], [(2, 2), (2, 3), (3, 2), (2, 2, 2)]),
        *((CONV, mesh) for mesh in ((2, 3), (2, 2, 2))),
    ],
)
def test_several_levels(coarse_graphs, step, mesh):
    coarse = coarse_graphs[step]
    plan = PartitionPlan.of(optimize(coarse, mesh))
    counted = assert_computes_the_same(coarse.graph, plan)
    # Levels that cut the same factor unevenly share it, and one of them cannot change alone. Rows of an image that an
    # inner level alone divides are stored in strides, and come together for every window.
    assert counted <= 1.3 * plan.bytes_moved or (step, mesh) == (CONV, (2, 2, 2))


def test_levels_that_cut_evenly_move_at_most_the_bytes_of_the_plan(coarse_graphs):
    coarse = coarse_graphs[GPT]
    plan = PartitionPlan.of(optimize(coarse, [2, 2]))
    assert 0 < assert_computes_the_same(coarse.graph, plan) <= plan.bytes_moved


@pytest.mark.parametrize("step", [GPT, CONV])
def test_ways_of_dividing_ops_that_no_search_would_choose(coarse_graphs, step):
    coarse = coarse_graphs[step]
    every = [(merged, variant) for merged in coarse.merged for variant in merged.variants[:-1]]
    assert len(every) > 100
    for merged, variant in every[:: 21 // min(3, EFFORT)]:  # benchmarks/worker_graphs.py tries all of them
        plan = PartitionPlan.of(recurse(coarse, [2], allowed_variant=only(merged, variant)))
        assert_computes_the_same(coarse.graph, plan)


@pytest.mark.parametrize("workers", [2, 3])
def test_pools_divided_otherwise_forward_and_backward_agree_about_places(coarse_graphs, workers):
    coarse = coarse_graphs[POOL]
    forward, backward = (merged for merged in coarse.merged if "pool" in coarse.graph.ops[merged.ops[0]].name)
    for one in ways(forward, "nhw"):
        for other in ways(backward, "nyx"):
            fixed = {id(forward): one, id(backward): other}
            allowed = lambda merged, way, fixed=fixed: fixed.get(id(merged), way) is way  # noqa: E731
            plan = PartitionPlan.of(recurse(coarse, [workers], allowed_variant=allowed))
            assert_computes_the_same(coarse.graph, plan)


def ways(merged, axes):
    """The variants of merged ops that divide some axes."""
    found = [variant for variant in merged.variants if variant.name in axes]
    assert len(found) == len(axes)
    return found


def only(merged, variant):
    """Allow merged ops to be divided in one way alone."""
    return lambda other, way: other is not merged or way is variant


@pytest.mark.parametrize("levels", [("r", 0), ("r", 0, 0), (0, "r", 0), ("r", 0, "r")])
def test_rows_of_a_table_may_be_divided_at_some_levels_alone(levels):
    def model():
        return torch.nn.Sequential(torch.nn.Embedding(88, 6, padding_idx=43), torch.nn.Linear(6, 4, bias=False))

    loss = torch.nn.functional.cross_entropy
    batch = {"x": torch.arange(88)[torch.randperm(88)].reshape(8, 11), "y": torch.randint(4, (88,))}
    step = TrainStep(
        model, batch, loss=lambda m, b: loss(m(b["x"]).flatten(0, 1), b["y"]), optimizer=SGD(lr=0.1, momentum=0.9)
    )
    graph = capture(step)
    pins = {"0.weight": ["replicated" if level == "r" else level for level in levels]}
    plan = search_partition(graph, 2 ** len(levels), pins=pins, evaluations=1).wait(progress=False)
    (looked_up,) = (plan.ops[op.id] for op in graph.ops if op.name == "0/embedding")
    assert {"v"} < {getattr(way, "axis", None) for way in looked_up}
    assert assert_computes_the_same(graph, plan) > 0


def test_a_wrong_division_is_seen(coarse_graphs):
    coarse = coarse_graphs[MLP]
    plan = PartitionPlan.of(BASELINES["data-parallel"](coarse, 2))
    graphs = [worker_graph(plan, coarse.graph, 0)] * 2  # both do the first worker's part
    values = live_in_values(coarse.graph)
    right = value_of(coarse.graph, on_one_device(coarse.graph, values), coarse.graph.outputs[0])
    wrong = value_of(graphs[0], run_step(graphs, coarse.graph, plan, values, ranks=[0, 0])[0], graphs[0].outputs[0])
    assert not torch.allclose(right, wrong)
