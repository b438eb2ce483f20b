"""Workers' graphs compute what the whole graph computes, and move no more bytes than their plan says."""

import pytest
import torch

from planner.capture import capture
from planner.partition import coarsen, recurse
from planner.partition.plan import PartitionPlan
from planner.partition.strategy import Split
from planner.partition.workers import counted_bytes, local_value, worker_graph
from planner.zoo import load
from tests.partition.workers.lockstep import run_step, value_of

SMALL = "mlp:layers=2,hidden=12,classes=6,batch=12"


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
            found[number] = torch.rand(tensor.shape, dtype=dtype, generator=generator) - 0.3
        else:
            found[number] = torch.randint(0, 4, tensor.shape, dtype=dtype, generator=generator)
    return found


def _single(graph, values):
    whole = PartitionPlan("", (), ((None,),) * len(graph.tensors), (), ())
    return run_step([graph], graph, whole, values)[0]


def check(graph, plan):
    values = _values(graph)
    graphs = [worker_graph(plan, graph, worker) for worker in range(plan.workers)]
    expected = _single(graph, values)
    memories = run_step(graphs, graph, plan, values)
    for rank, (part, memory) in enumerate(zip(graphs, memories, strict=True)):
        pairs = [(part.outputs[0], graph.outputs[0], None)]
        pairs += [(mine, theirs, plan.tensors[theirs][0])
                  for (mine, _), (theirs, _) in zip(part.program.state, graph.program.state, strict=True)]  # fmt: skip
        for mine, theirs, state in pairs:
            right = local_value(value_of(graph, expected, theirs), state, plan.workers, rank)
            torch.testing.assert_close(value_of(part, memory, mine), right, rtol=1e-10, atol=1e-11)
    return counted_bytes(graphs)


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("step", [SMALL, SMALL + ",optimizer=momentum"])
def test_an_mlp_as_the_recursion_splits_it(step, workers):
    graph = capture(load(step), progress=False)
    plan = PartitionPlan.of(recurse(coarsen(graph), [workers]))
    assert any(isinstance(states[0], Split) for states in plan.tensors)
    assert check(graph, plan) == plan.bytes_moved
