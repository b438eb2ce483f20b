"""One op of a step, divided in a way, computed by workers in one process from whole inputs to whole results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from lockstep import exchange, ready
from worker_comparison import live_in_values

from planner.graph import Graph, Op
from planner.partition import PartitionPlan, splittable_ops
from planner.partition.op_strategies import SplittableOp
from planner.partition.plan import AxisDivision, Division, LinearDivision
from planner.partition.strategy import Partial, Replicated, Strategy
from planner.partition.workers.events.worker_events import WorkerEvents
from planner.partition.workers.op_calls.divisions import divided
from planner.partition.workers.op_calls.op_calls import OpCalls
from planner.partition.workers.tensors.fetched_tensors import FetchedTensors
from planner.partition.workers.tensors.stored_tensors import StoredCopy, StoredTensors
from planner.program import (
    ALL_GATHER,
    ALL_REDUCE,
    COLLECTIVES,
    REDUCE_SCATTER,
    Layout,
    ScalarRef,
    TensorRef,
    capturing_backend,
)


@dataclass(frozen=True)
class OpCase:
    """An op with the contents of the storages that it reads and writes, before and after it.

    Args:
        graph, op, splittable: the step, the op and its description.
        existing: the storages that exist before.
        before, after: by storage, its bytes.
    """

    graph: Graph
    op: Op
    splittable: SplittableOp
    existing: frozenset[int]
    before: dict[int, torch.Tensor]
    after: dict[int, torch.Tensor]


def op_cases(graph: Graph, values: dict[int, torch.Tensor] | None = None) -> Iterator[OpCase]:
    """A case for every described op of a graph; of ops that are alike the first.

    Args:
        graph: the step.
        values: of what exists before it, by tensor; made up if they are not given.
    """
    program, memory = graph.program, {}
    existing: set[int] = set()
    for storage in graph.storages:
        memory[storage.id] = torch.full((storage.bytes,), 255, dtype=torch.uint8)
    given = values if values is not None else live_in_values(graph)
    for number, value in [*given.items(), *program.constants]:
        _tensor(graph, memory, number).copy_(value)
        existing.add(graph.tensors[number].storage)
    scalars, seen = program.scalars(0), set()
    for op, call, splittable in zip(graph.ops, program.calls, splittable_ops(graph), strict=True):
        touched = {graph.tensors[tensor].storage for tensor in (*op.inputs, *op.outputs)}
        new = splittable.described and id(splittable) not in seen
        seen.add(id(splittable))
        before = {storage: memory[storage].clone() for storage in touched} if new else {}
        args, kwargs = (_filled(graph, memory, scalars, value) for value in (call.args, call.kwargs))
        made = call.target(*args, **kwargs)
        made = made if isinstance(made, list | tuple) else [made]
        for number, value in zip(call.results, made, strict=True):
            if number >= 0 and not call.in_place and value is not None:  # kernels differ in what they leave out
                _tensor(graph, memory, number).copy_(value)
        if new:
            after = {storage: memory[storage].clone() for storage in touched}
            yield OpCase(graph, op, splittable, frozenset(existing & touched), before, after)
        existing |= touched


def division_by(strategy: Strategy) -> Division:
    """The division of all of a strategy's axis into contiguous chunks."""
    if strategy.axis is None:
        return LinearDivision(tuple(p for p, state in enumerate(strategy.inputs) if isinstance(state, Partial)))
    return AxisDivision(strategy.axis.name, 1, strategy.axis.size, 1)


def assert_op_is_computed(case: OpCase, divisions: Sequence[Division], mesh: tuple[int, ...]) -> int:
    """Divide an op whose inputs every worker has, and compare what each worker then has of its results.

    Returns the bytes that all workers together receive.

    Args:
        case: the op.
        divisions: how it is divided, level by level.
        mesh: into how many parts each level cuts.

    Raises:
        StowageError: workers cannot compute it in such parts.
        AssertionError: they compute something else.
    """
    graph, op = case.graph, case.op
    places = list(product(*(range(size) for size in mesh)))
    whole = (Replicated(),) * len(mesh)
    plan = PartitionPlan("", mesh, (whole,) * len(graph.tensors), (), ())
    workers = []
    for place in places:
        calls = WorkerEvents(mesh, place)
        tensors = StoredTensors(plan, graph, calls)
        memory = {}
        for storage in case.existing:
            here = calls.storage(graph.storages[storage].bytes)
            tensors.stored[storage] = StoredCopy(here, tensors.whole)
            memory[here] = case.before[storage].clone()
        ways = tuple(divided(op.name, case.splittable, each, len(op.outputs)) for each in divisions)
        OpCalls(graph, tensors, FetchedTensors(tensors), capturing_backend(graph.device)).add(
            op, graph.program.calls[op.id], case.splittable, ways
        )
        made = {storage: tensors.stored[storage].storage for storage in case.after}
        workers.append(_steps(calls, memory, graph.program.scalars(0), made))
    received: list[int] = []
    for memory in _together(workers, places, received):
        for tensor in op.outputs:
            storage = graph.tensors[tensor].storage
            right, found = (_tensor(graph, each, tensor) for each in ({storage: case.after[storage]}, memory))
            single = right.dtype in (torch.float32, torch.float16, torch.bfloat16)
            tolerance = {"rtol": 1e-4, "atol": 1e-5} if single else {"rtol": 1e-10, "atol": 1e-11}
            if right.dtype in (torch.float16, torch.bfloat16):
                tolerance = {"rtol": 2e-2, "atol": 1e-2}
            torch.testing.assert_close(found, right, equal_nan=True, **tolerance)
    return sum(received)


def _steps(calls, memory, scalars, made):
    """The calls of one worker, up to each collective; at last the storages of the step."""

    def tensor(layout):
        size = calls.storage_bytes[layout.storage]
        flat = memory.setdefault(layout.storage, torch.full((size,), 255, dtype=torch.uint8)).view(layout.dtype)
        return flat.as_strided(layout.shape, layout.strides, layout.offset)

    def filled(value):
        if isinstance(value, Layout):
            return tensor(value)
        if isinstance(value, ScalarRef):
            return scalars[value.name]
        if isinstance(value, dict):
            return {name: filled(item) for name, item in value.items()}
        return [filled(item) for item in value] if isinstance(value, list | tuple) else value

    for event in calls.events:
        args, kwargs = filled(event.args), filled(event.kwargs)
        found = (yield event.target, args) if event.target in COLLECTIVES else event.target(*args, **kwargs)
        found = found if isinstance(found, list | tuple) else [found]
        for result, value in zip(event.results, found, strict=True):
            if result is not None:
                assert tensor(result).shape == value.shape, (str(event.target), tensor(result).shape, value.shape)
                assert result.dtype == value.dtype, (str(event.target), result.dtype, value.dtype)
                tensor(result).copy_(value)
    yield {storage: memory.get(here, torch.empty(0, dtype=torch.uint8)) for storage, here in made.items()}


def _together(workers, places, received):
    asked = [next(worker) for worker in workers]
    while not all(isinstance(request, dict) for request in asked):
        group = ready(asked, places)
        answers = exchange([asked[worker] for worker in group])
        received.append(_received([asked[worker] for worker in group]))
        for worker, answer in zip(group, answers, strict=True):
            asked[worker] = workers[worker].send(answer)
    return asked


def _received(asked):
    """Bytes that the workers of a collective receive."""
    (target, (sent, *_)), workers = asked[0], len(asked)
    if target is ALL_REDUCE:
        elements = 2 * (workers - 1) * sent.numel()
    elif target is ALL_GATHER:
        elements = (workers - 1) * sum(request[1][0].numel() for request in asked)
    elif target is REDUCE_SCATTER:
        elements = (workers - 1) * sent.numel()
    else:
        elements = sum(sum(request[1][3]) - request[1][3][rank] for rank, request in enumerate(asked))
    return elements * sent.element_size()


def _tensor(graph, memory, number):
    tensor = graph.tensors[number]
    flat = memory[tensor.storage].view(getattr(torch, tensor.dtype))
    return flat.as_strided(tensor.shape, tensor.strides, tensor.offset)


def _filled(graph, memory, scalars, value):
    if isinstance(value, TensorRef):
        return _tensor(graph, memory, value.tensor)
    if isinstance(value, ScalarRef):
        return scalars[value.name]
    if isinstance(value, dict):
        return {name: _filled(graph, memory, scalars, item) for name, item in value.items()}
    return [_filled(graph, memory, scalars, item) for item in value] if isinstance(value, list | tuple) else value
