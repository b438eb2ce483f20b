"""Workers' graphs compute what the whole graph computes, and but for one move the bytes of their plan."""

import pytest
import torch

from planner.capture import capture
from planner.errors import StowageError
from planner.partition import BASELINES, coarsen, recurse
from planner.partition.plan import PartitionPlan
from planner.partition.strategy import Split
from planner.partition.workers import counted_bytes, local_value, worker_graph
from planner.zoo import load
from tests.partition.workers.lockstep import run_step, value_of

MLP = "mlp:layers=1,hidden=5,classes=7,batch=40"
ADAM = "mlp:layers=2,hidden=10,classes=6,batch=7,optimizer=adam"
GPT = "gpt:layers=1,hidden=12,heads=4,sequence=6,vocabulary=20,batch=6"
RNN = "rnn:layers=1,hidden=6,steps=3,batch=6,classes=4"


@pytest.fixture(scope="module", autouse=True)
def doubles():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def _values(graph):
    generator = torch.Generator().manual_seed(0)
    found = {}
    for number in [n for n, _ in graph.program.state] + list(graph.program.batch):
        tensor = graph.tensors[number]
        dtype = getattr(torch, tensor.dtype)
        if dtype.is_floating_point:
            found[number] = (
                torch.rand(tensor.shape, dtype=dtype, generator=generator) + 0.1
            )  # roots of moments are taken
        else:
            found[number] = torch.randint(0, 4, tensor.shape, dtype=dtype, generator=generator)
    return found


def _single(graph, values):
    whole = PartitionPlan("", (), ((),) * len(graph.tensors), (), ())
    return run_step([graph], graph, whole, values)[0]


def check(graph, plan):
    values = _values(graph)
    graphs = [worker_graph(plan, graph, worker) for worker in range(plan.workers)]
    expected = _single(graph, values)
    memories = run_step(graphs, graph, plan, values)
    for rank, (part, memory) in enumerate(zip(graphs, memories, strict=True)):
        loss = value_of(graph, expected, graph.outputs[0])
        torch.testing.assert_close(value_of(part, memory, part.outputs[0]), loss, rtol=1e-10, atol=1e-11)
        for (mine, _), (theirs, _) in zip(part.program.state, graph.program.state, strict=True):
            right = local_value(value_of(graph, expected, theirs), plan, theirs, rank)
            torch.testing.assert_close(value_of(part, memory, mine), right, rtol=1e-10, atol=1e-11)
    return counted_bytes(graphs, plan.mesh)


@pytest.fixture(scope="module")
def coarse_graphs():
    return {step: coarsen(capture(load(step), progress=False)) for step in (MLP, ADAM, GPT, RNN)}


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("step", [MLP, ADAM, GPT, RNN])
def test_what_the_recursion_finds(coarse_graphs, step, workers):
    coarse = coarse_graphs[step]
    plan = PartitionPlan.of(recurse(coarse, [workers]))
    assert any(isinstance(states[0], Split) for states in plan.tensors)
    assert check(coarse.graph, plan) == plan.bytes_moved > 0


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("method", ["data-parallel", "all-row"])
@pytest.mark.parametrize("step", [MLP, ADAM, GPT, RNN])
def test_data_parallelism_and_split_rows(coarse_graphs, step, method, workers):
    coarse = coarse_graphs[step]
    plan = PartitionPlan.of(BASELINES[method](coarse, workers))
    counted = check(coarse.graph, plan)
    if (step, method, workers) == (RNN, "all-row", 3):  # a slice that one worker has is gathered in full
        assert counted == plan.bytes_moved + 576
    else:
        assert counted == plan.bytes_moved > 0


def test_a_wrong_division_is_seen(coarse_graphs):
    coarse = coarse_graphs[MLP]
    plan = PartitionPlan.of(BASELINES["data-parallel"](coarse, 2))
    graphs = [worker_graph(plan, coarse.graph, 0)] * 2  # both do the first worker's part
    values = _values(coarse.graph)
    right = value_of(coarse.graph, _single(coarse.graph, values), coarse.graph.outputs[0])
    wrong = value_of(graphs[0], run_step(graphs, coarse.graph, plan, values, ranks=[0, 0])[0], graphs[0].outputs[0])
    assert not torch.allclose(right, wrong)


def test_several_levels_are_refused(coarse_graphs):
    coarse = coarse_graphs[MLP]
    with pytest.raises(StowageError, match="worker graphs of 2 levels cannot be made yet"):
        worker_graph(PartitionPlan.of(recurse(coarse, [2, 2])), coarse.graph, 0)


def test_what_must_be_combined_while_an_op_runs_is_refused_by_name(coarse_graphs):
    coarse = coarse_graphs[GPT]
    with pytest.raises(StowageError, match="layer_norm cannot be computed in parts"):
        worker_graph(PartitionPlan.of(BASELINES["icml18"](coarse, 2)), coarse.graph, 0)
