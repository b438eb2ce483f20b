"""All workers' graphs in one process: each runs to its next collective, which is then made for all of them together."""

from __future__ import annotations

import torch

from planner.partition.workers import COLLECTIVES, local_value
from planner.program import ScalarRef, TensorRef


def run_step(graphs, whole, plan, values, ranks=None):
    """Run a step on every worker; per worker the values of the storages of its graph, by number.

    `values` has the contents of the whole graph's live-in tensors, by their numbers.
    """
    workers = [
        _steps(graph, whole, plan, values, rank)
        for rank, graph in zip(ranks or range(len(graphs)), graphs, strict=True)
    ]
    asked = [next(worker) for worker in workers]
    while not isinstance(asked[0], dict):
        assert len({request[0] for request in asked}) == 1, "workers make different collectives"
        answers = _exchange(asked)
        asked = [worker.send(answer) for worker, answer in zip(workers, answers, strict=True)]
    assert all(isinstance(request, dict) for request in asked), (
        "a worker waits for a collective that others do not make"
    )
    return asked


def value_of(graph, memory, tensor):
    """The value of a tensor of a graph in a worker's memory."""
    return _strided(graph, memory, tensor)


def _exchange(asked):
    name, count = str(asked[0][0]), len(asked)
    sent = [request[1][0] for request in asked]
    if "all_reduce" in name:
        return [sum(sent[1:], sent[0].clone()) for _ in sent]
    if "all_gather" in name:
        assert all([part.numel() for part in sent] == list(request[1][2]) for request in asked)
        return [torch.cat(sent) for _ in sent]
    if "reduce_scatter" in name:
        assert len({tuple(request[1][2]) for request in asked}) == 1
        total = sum(sent[1:], sent[0].clone())
        return [part.clone() for part in total.split(list(asked[0][1][2]))]
    pieces = [part.split(list(request[1][2])) for part, request in zip(sent, asked, strict=True)]
    for rank, request in enumerate(asked):
        assert [pieces[other][rank].numel() for other in range(count)] == list(request[1][3])
    return [torch.cat([pieces[other][rank] for other in range(count)]) for rank in range(count)]


def _steps(graph, whole, plan, values, rank):
    program, memory = graph.program, {}
    scalars = program.scalars(0)

    def tensor(number):
        return _strided(graph, memory, number)

    def filled(value):
        if isinstance(value, TensorRef):
            return tensor(value.tensor)
        if isinstance(value, ScalarRef):
            return scalars[value.name]
        return [filled(item) for item in value] if isinstance(value, list | tuple) else value

    for storage in graph.storages:
        memory[storage.id] = torch.full((storage.bytes,), 255, dtype=torch.uint8)  # NaN as numbers
    held = [number for number, _ in program.state] + list(program.batch)
    original = [number for number, _ in whole.program.state] + list(whole.program.batch)
    for mine, theirs in zip(held, original, strict=True):
        tensor(mine).copy_(local_value(values[theirs], plan.tensors[theirs][0], plan.workers, rank))
    for mine, value in program.constants:
        tensor(mine).copy_(value)
    for call in program.calls:
        args, kwargs = filled(call.args), {name: filled(value) for name, value in call.kwargs.items()}
        if call.target in COLLECTIVES:
            made = yield call.target, args
        else:
            made = call.target(*args, **kwargs)
        made = made if isinstance(made, list | tuple) else [made]
        for number, value in zip(call.results, made, strict=True):
            if number >= 0 and not call.in_place:
                assert tensor(number).shape == value.shape, call
                tensor(number).copy_(value)
    yield memory


def _strided(graph, memory, number):
    tensor = graph.tensors[number]
    flat = memory[tensor.storage].view(getattr(torch, tensor.dtype))
    return flat.as_strided(tensor.shape, tensor.strides, tensor.offset)
