"""Whether workers' graphs, run together, leave every worker with its part of what the whole graph computes."""

import torch
from lockstep import run_step, value_of

from planner.partition.plan import PartitionPlan
from planner.partition.workers import counted_bytes, local_value, worker_graph


def live_in_values(graph):
    """Values of all that exists before a step, by tensor."""
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
            found[number] = torch.randint(0, 3, tensor.shape, dtype=dtype, generator=generator)
    return found


def on_one_device(graph, values):
    """The storages of a whole graph after a step."""
    whole = PartitionPlan("", (), ((),) * len(graph.tensors), (), ())
    return run_step([graph], graph, whole, values)[0]


def assert_computes_the_same(graph, plan):
    """Compare the loss and all state after a step; returns the bytes that workers receive.

    To 1e-10, or to 1e-5 where the step itself goes through single precision, as losses of transformers models do.
    """
    single = any(tensor.dtype == "float32" for tensor in graph.tensors)
    tolerance = {"rtol": 1e-5, "atol": 1e-6} if single else {"rtol": 1e-10, "atol": 1e-11}
    values = live_in_values(graph)
    graphs = [worker_graph(plan, graph, worker, progress=False) for worker in range(plan.workers)]
    expected = on_one_device(graph, values)
    memories = run_step(graphs, graph, plan, values)
    for rank, (part, memory) in enumerate(zip(graphs, memories, strict=True)):
        loss = value_of(graph, expected, graph.outputs[0])
        torch.testing.assert_close(value_of(part, memory, part.outputs[0]), loss, **tolerance)
        for (mine, _), (theirs, _) in zip(part.program.state, graph.program.state, strict=True):
            right = local_value(value_of(graph, expected, theirs), plan, theirs, rank)
            torch.testing.assert_close(value_of(part, memory, mine), right, **tolerance)
    return counted_bytes(graphs, plan.mesh)
