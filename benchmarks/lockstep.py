"""All workers' graphs in one process: each runs to its next collective, which is then made for all of them together."""

from __future__ import annotations

from itertools import product

import torch

from planner.partition.workers import local_value
from planner.program import COLLECTIVES, ScalarRef, TensorRef


def run_step(graphs, whole, plan, values, ranks=None):
    """Run a step on every worker; per worker the values of the storages of its graph, by number.

    `values` has the contents of the whole graph's live-in tensors, by their numbers.
    """
    workers = [
        _steps(graph, whole, plan, values, rank)
        for rank, graph in zip(ranks or range(len(graphs)), graphs, strict=True)
    ]
    asked = [next(worker) for worker in workers]
    places = list(product(*(range(size) for size in plan.mesh)))
    while not all(isinstance(request, dict) for request in asked):
        group = ready(asked, places)
        answers = exchange([asked[worker] for worker in group])
        for worker, answer in zip(group, answers, strict=True):
            asked[worker] = workers[worker].send(answer)
    return asked


def ready(asked, places):
    """The workers of a collective that all of them have come to."""
    for request, place in zip(asked, places, strict=True):
        if isinstance(request, dict):
            continue
        levels = {int(level) for level in request[1][-1].split(",")}
        group = [
            worker for worker, other in enumerate(places)
            if all(a == b for level, (a, b) in enumerate(zip(place, other, strict=True)) if level not in levels)
        ]  # fmt: skip
        waiting = [asked[worker] for worker in group]
        if all(not isinstance(each, dict) and each[1][-1] == request[1][-1] for each in waiting):
            assert len({each[0] for each in waiting}) == 1, "workers make different collectives"
            return group
    raise AssertionError("every worker waits for a collective that others do not make")


def value_of(graph, memory, tensor):
    """The value of a tensor of a graph in a worker's memory."""
    return _strided(graph, memory, tensor)


def exchange(asked):
    name, count = str(asked[0][0]), len(asked)
    sent = [request[1][0] for request in asked]
    if "all_reduce" in name:
        (reduction,) = {request[1][2] for request in asked}
        stacked = torch.stack(sent)
        reduce = {"sum": stacked.sum, "max": stacked.amax, "min": stacked.amin, "prod": stacked.prod}[reduction]
        return [reduce(0).to(sent[0].dtype) for _ in sent]
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
        tensor(mine).copy_(local_value(values[theirs], plan, theirs, rank))
    for mine, value in program.constants:
        tensor(mine).copy_(value)
    state = torch.Generator().manual_seed(0).get_state()  # every worker draws the same numbers
    states = {}  # by op that draws numbers of its own, before it does
    for op, call in zip(graph.ops, program.calls, strict=True):
        args, kwargs = filled(call.args), {name: filled(value) for name, value in call.kwargs.items()}
        if call.target in COLLECTIVES:
            made = yield call.target, args
        elif op.random:
            torch.set_rng_state(states.setdefault(op.drawn_first_by, state))
            made = call.target(*args, **kwargs)
            state = torch.get_rng_state() if op.draws_as < 0 else state
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
