"""Consistency checks that every graph must pass, however it was made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from planner.graph.types import Graph, Kind, Op, Storage, Tensor


def check(graph: Graph) -> list[str]:
    """List the inconsistencies of a graph, one sentence each; empty when it is valid."""
    problems = [*_references(graph)]
    return problems or [*_names(graph), *_layouts(graph), *_liveness(graph), *_workspaces(graph), *_draws(graph)]


def _references(graph: Graph) -> list[str]:
    problems: list[str] = []
    tables: tuple[tuple[str, Sequence[Storage | Tensor | Op]], ...] = (
        ("storage", graph.storages), ("tensor", graph.tensors), ("op", graph.ops),
    )  # fmt: skip
    for name, items in tables:
        problems += [
            f"{name} {position} has id {item.id}" for position, item in enumerate(items) if item.id != position
        ]
    storages, tensors = range(len(graph.storages)), range(len(graph.tensors))
    for tensor in graph.tensors:
        if tensor.storage not in storages:
            problems.append(f"tensor {tensor.name} is in storage {tensor.storage}, which does not exist")
        if tensor.base != -1 and tensor.base not in tensors:
            problems.append(f"tensor {tensor.name} is a view of tensor {tensor.base}, which does not exist")
        elif tensor.base >= tensor.id:
            problems.append(f"tensor {tensor.name} is a view of tensor {tensor.base}, which does not come before it")
    for op in graph.ops:
        if any(tensor not in tensors for tensor in (*op.inputs, *op.outputs, *op.overwrites)):
            problems.append(f"op {op.name} names a tensor that does not exist")
        if op.workspace != -1 and op.workspace not in storages:
            problems.append(f"op {op.name} names workspace {op.workspace}, which does not exist")
        if any(storage not in storages for storage in op.first_run_only):
            problems.append(f"op {op.name} names a storage for its first run that does not exist")
        if op.draws_as != -1 and op.draws_as not in range(op.id):
            problems.append(f"op {op.name} draws the numbers of op {op.draws_as}, which does not come before it")
    if any(tensor not in tensors for tensor in graph.outputs):
        problems.append("the step returns a tensor that does not exist")
    return problems


def _names(graph: Graph) -> list[str]:
    repeated = [name for name, count in Counter(op.name for op in graph.ops).items() if count > 1]
    return [f"op name {name} is used more than once" for name in repeated]


def _layouts(graph: Graph) -> list[str]:
    problems = [f"storage {storage.name} has {storage.bytes} bytes" for storage in graph.storages if storage.bytes < 0]
    if graph.outside_bytes < 0:
        problems.append(f"the ops have {graph.outside_bytes} bytes of scratch memory outside of the arena")
    for tensor in graph.tensors:
        if len(tensor.shape) != len(tensor.strides):
            problems.append(f"tensor {tensor.name} has {len(tensor.shape)} sizes and {len(tensor.strides)} strides")
        elif tensor.offset < 0 or any(size < 0 for size in (*tensor.shape, *tensor.strides)):
            problems.append(f"tensor {tensor.name} has a negative size, stride or offset")
        if tensor.base != -1 and graph.tensors[tensor.base].storage != tensor.storage:
            problems.append(f"tensor {tensor.name} is in another storage than the tensor it is a view of")
    return problems


def _liveness(graph: Graph) -> list[str]:
    problems = []
    alive = {storage.id for storage in graph.storages if storage.live_in}
    for op in graph.ops:
        for storage in graph.reads[op.id]:
            if storage not in alive:
                problems.append(f"op {op.name} reads {graph.storages[storage].name} before it is made")
        for storage in graph.writes[op.id]:
            if graph.storages[storage].kind is Kind.WORKSPACE:
                problems.append(f"op {op.name} writes a result into a workspace")
        for storage in op.first_run_only:
            if storage not in graph.writes[op.id]:
                name = graph.storages[storage].name
                problems.append(f"op {op.name} has {name} for its first run alone, and does not write it")
        if any(tensor not in op.inputs for tensor in op.overwrites):
            problems.append(f"op {op.name} overwrites a tensor that is not among its inputs")
        alive.update(graph.writes[op.id])
    for storage in graph.output_storages - alive:
        problems.append(f"the step returns {graph.storages[storage].name}, which is never made")
    return problems


def _workspaces(graph: Graph) -> list[str]:
    owners = Counter(op.workspace for op in graph.ops if op.workspace >= 0)
    problems = [f"workspace {graph.storages[w].name} has {count} ops" for w, count in owners.items() if count > 1]
    for storage in graph.storages:
        if (storage.kind is Kind.WORKSPACE) != (storage.id in owners):
            problems.append(f"storage {storage.name} and the op whose workspace it is do not agree")
    return problems


def _draws(graph: Graph) -> list[str]:
    problems = []
    for op in graph.ops:
        if op.draws_as < 0:
            continue
        first = graph.ops[op.draws_as]
        if not op.random or not first.random or first.draws_as != -1:
            problems.append(f"op {op.name} draws the numbers of {first.name}, and one of them draws none of its own")
    return problems
