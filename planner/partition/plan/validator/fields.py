"""Every field of a partition plan is of its type and in its range, and the plan is for this graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from typing import Any, TypeVar

from planner.graph import Graph, Op, Tensor, fingerprint
from planner.partition.plan.partition_plan import AxisDivision, LinearDivision, PartitionPlan
from planner.partition.strategy import Partial, Replicated, Split
from planner.partition.tdl import Reduction

_Owner = TypeVar("_Owner", Tensor, Op)


def check_plan_fields(plan: PartitionPlan, graph: Graph) -> list[str]:
    """Check each field by itself; the other checks rely on a plan without such problems."""
    problems = [*_mesh(plan), *_names(plan)]
    if problems:
        return problems
    if plan.fingerprint != fingerprint(graph):
        return [f"the partition plan is for another graph than {graph.name}"]
    return [*_bytes(plan), *_tensors(plan, graph), *_ops(plan, graph)]


def _mesh(plan: PartitionPlan) -> Iterator[str]:
    if not isinstance(plan.mesh, tuple) or not all(_whole(workers) and workers >= 2 for workers in plan.mesh):
        yield f"mesh is {plan.mesh!r}, and every level has a whole number of workers, at least 2"


def _names(plan: PartitionPlan) -> Iterator[str]:
    for name in ("fingerprint", "method"):
        if type(getattr(plan, name)) is not str:
            yield f"{name} is not text"
    if plan.seed is not None and not (_whole(plan.seed) and plan.seed >= 0):
        yield f"seed is {plan.seed!r}, which is not a whole number from 0 on"
    for name in ("bound", "gap"):
        value = getattr(plan, name)
        if value is not None and not _amount(value):
            yield f"{name} is {value!r}, which is not a number from 0 on"


def _bytes(plan: PartitionPlan) -> Iterator[str]:
    if len(plan.bytes_per_level) != len(plan.mesh):
        yield f"the plan has bytes for {len(plan.bytes_per_level)} levels, and its mesh has {len(plan.mesh)}"
    for level, moved in enumerate(plan.bytes_per_level):
        if not _amount(moved):
            yield f"{moved!r} bytes at level {level} are not a number from 0 on"


def _tensors(plan: PartitionPlan, graph: Graph) -> Iterator[str]:
    if len(plan.tensors) != len(graph.tensors):
        yield f"the plan has states of {len(plan.tensors)} tensors, and the graph has {len(graph.tensors)}"
        return
    yield from _levels("tensor", "states", graph.tensors, plan.tensors, len(plan.mesh), _stored)


def _levels(
    kind: str,
    entries: str,
    owners: Sequence[_Owner],
    rows: Sequence[Sequence[Any]],
    levels: int,
    problem_of: Callable[[_Owner, Any], str],
) -> Iterator[str]:
    """Check the entry of every tensor or op at every level."""
    for owner, row in zip(owners, rows, strict=True):
        if len(row) != levels:
            yield f"{kind} {owner.name} has {len(row)} {entries}, and the mesh has {levels} levels"
            continue
        for level, entry in enumerate(row):
            if problem := problem_of(owner, entry):
                yield f"{kind} {owner.name} at level {level}: {problem}"


def _stored(tensor: Tensor, state: Any) -> str:
    if state is None and tensor.base < 0:
        return "it has no state, and it is no view"
    return _state(state, tensor.shape)


def _state(state: Any, shape: tuple[int, ...]) -> str:
    if isinstance(state, Split):
        numbers = (state.dimension, state.outer, state.size, state.inner)
        if not all(_whole(number) for number in numbers) or min(numbers[1:]) < 1:
            return "its split holds what is no factor"
        if not 0 <= state.dimension < len(shape):
            return f"it is split along dimension {state.dimension}, and its shape is {list(shape)}"
        if state.outer * state.size * state.inner != shape[state.dimension]:
            factors = f"{state.outer} x {state.size} x {state.inner}"
            return f"its split of dimension {state.dimension} as {factors} does not fit its shape {list(shape)}"
        return "it is stored with a halo, and halos are only fetched" if state.halo else ""
    if isinstance(state, Partial):
        return "" if state.reduction is Reduction.SUM else f"partial results of {state.reduction} cannot be stored"
    if state is None or isinstance(state, Replicated):
        return ""
    return f"{state!r} is no state in which a tensor is stored"


def _ops(plan: PartitionPlan, graph: Graph) -> Iterator[str]:
    if len(plan.ops) != len(graph.ops):
        yield f"the plan divides {len(plan.ops)} ops, and the graph has {len(graph.ops)}"
        return
    yield from _levels("op", "divisions", graph.ops, plan.ops, len(plan.mesh), _division)


def _division(_op: Op, division: Any) -> str:
    match division:
        case None:
            fits = True
        case AxisDivision(axis, outer, size, inner):
            fits = type(axis) is str and all(_whole(n) and n >= 1 for n in (outer, size, inner))
        case LinearDivision(inputs):
            fits = isinstance(inputs, tuple) and all(_whole(place) and place >= 0 for place in inputs)
        case _:
            fits = False
    return "" if fits else f"{division!r} is no division"


def _whole(value: Any) -> bool:
    return type(value) is int


def _amount(value: Any) -> bool:
    return type(value) in (int, float) and isfinite(value) and value >= 0
