"""The graph of one worker: every op on the worker's chunks, with collectives where tensors are spread otherwise."""

from __future__ import annotations

from typing import Any, cast

import torch

from planner.capture import PersistentTensor, Trace, lower
from planner.errors import StowageError
from planner.graph import Graph, Kind, fingerprint
from planner.partition.op_strategies import splittable_ops
from planner.partition.plan import PartitionPlan
from planner.partition.workers.events.worker_events import WorkerEvents, dense
from planner.partition.workers.op_calls.divisions import divided
from planner.partition.workers.op_calls.op_calls import OpCalls
from planner.partition.workers.part_values import local_value
from planner.partition.workers.tensors.fetched_tensors import FetchedTensors
from planner.partition.workers.tensors.stored_tensors import StoredTensors
from planner.program import Program, Readings, capturing_backend
from planner.progress import Progress, ShowProgress, reporting

#: The share of the work that is done once all ops are divided.
_MOST = 0.9


def worker_graph(plan: PartitionPlan, graph: Graph, worker: int, *, progress: ShowProgress = True) -> Graph:
    """The graph of one worker, with its program, for which everything that works on a graph works unchanged.

    Args:
        plan: the partition.
        graph: the captured step that it is for, with its program.
        worker: which worker.
        progress: True shows progress, False shows nothing; a function is called with the share done, 0 to 1, and what
            is being done, and may raise to end the call.

    Raises:
        StowageError: the plan is for another graph, there is no such worker, or an op cannot be computed in the parts
            that the plan chose.
    """
    if not isinstance(plan, PartitionPlan) or not isinstance(graph, Graph):
        raise StowageError("worker_graph takes a partition and its graph, in this order")
    if not isinstance(graph.program, Program):
        raise StowageError(f"the graph {graph.name} has no program: capture the step again")
    if plan.fingerprint != fingerprint(graph):
        raise StowageError(
            f"the partition plan is for another graph than {graph.name}: search for one with this model, batch and "
            f'optimizer, captured for device="{graph.device}"'
        )
    effects = graph.program.effects
    if effects is not None and not effects.constant:
        raise StowageError(f"{graph.name} keeps tensors in Python variables, so it stays whole")
    plan.place(worker)
    with reporting(progress) as report:
        report(0.0, f"making the graph of worker {worker}")
        return _put_together(plan, graph, graph.program, worker, report)


def _put_together(plan: PartitionPlan, graph: Graph, program: Program, worker: int, report: Progress) -> Graph:
    calls = WorkerEvents(plan.mesh, plan.place(worker))
    tensors = StoredTensors(plan, graph, calls)
    fetched = FetchedTensors(tensors)
    backend = capturing_backend(graph.device)
    state = []
    for tensor, key in program.state:
        storage = graph.storages[graph.tensors[tensor].storage]
        state.append(PersistentTensor(storage.name, key, storage.kind, "", tensors.existing(tensor)))
    batch = [(graph.tensors[tensor].name, tensors.existing(tensor)) for tensor in program.batch]
    constants = [
        (tensors.existing(tensor), local_value(value, plan, tensor, worker)) for tensor, value in program.constants
    ]
    op_calls, ops = OpCalls(graph, tensors, fetched, backend), splittable_ops(graph)
    for op, call in zip(graph.ops, program.calls, strict=True):
        calls.phase, calls.module, calls.source = op.phase, op.module, op.source
        ways = tuple(divided(op.name, ops[op.id], division, len(op.outputs)) for division in plan.ops[op.id])
        op_calls.add(op, call, ops[op.id], ways)
        report(_MOST * (op.id + 1) / len(graph.ops))
    outputs = [fetched.fetch(tensor, (None,) * len(plan.mesh), "the step") for tensor in graph.outputs]
    overflow = outputs.pop() if program.overflow else None
    constants.append((calls.token, torch.empty(0, dtype=torch.uint8)))
    gradients = {
        storage.name.removesuffix(".grad"): dense(tensors.stored[storage.id].storage, (0,), torch.uint8)
        for storage in graph.storages
        if storage.kind is Kind.GRADIENT and storage.id in tensors.stored
    }
    nothing = cast(Any, None)
    trace = Trace(
        graph.name, calls.events, calls.storage_bytes, state, batch, outputs, gradients, constants, set(),
        dict(graph.modules), nothing, {}, {}, None, program.returned, nothing, None, Readings(), program.guessed,
        overflow=overflow,
    )  # fmt: skip
    return lower(trace, program.scalars, backend)
