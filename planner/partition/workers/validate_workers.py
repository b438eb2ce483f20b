"""Proves that worker graphs fit together: they meet in the same collectives, in the same order, with the same sizes.

Shares no code with what makes them: it follows all workers at once, as processes would run them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from planner.errors import StowageError
from planner.graph import Graph, Tensor
from planner.partition.plan import PartitionPlan
from planner.partition.strategy import Split
from planner.program import Program

_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
_LARGEST = 3  # workers that are named in one sentence


@dataclass(frozen=True, slots=True)
class _Meeting:
    """A collective that a worker comes to."""

    op: str
    kernel: str
    group: str
    sent: Tensor
    received: Tensor
    args: tuple[Any, ...]


def validate_workers(
    plan: PartitionPlan, graph: Graph, workers: Sequence[Graph], orders: Sequence[Sequence[int]] | None = None
) -> list[str]:
    """List the reasons why worker graphs do not fit together, one sentence each; empty when it is proven.

    Args:
        plan: the partition.
        graph: the step that it is for.
        workers: the worker graphs, in the order of the workers.
        orders: for each of them the order in which it runs its ops, such as that of a swap plan; as captured if not
            given.

    Raises:
        StowageError: there are more or fewer graphs or orders than workers, or a graph has no program.
    """
    if len(workers) != plan.workers or (orders is not None and len(orders) != plan.workers):
        given = len(workers) if orders is None else f"{len(workers)} graphs and {len(orders)} orders"
        raise StowageError(f"the partition is for {plan.workers} workers, and {given} are given")
    taken = orders if orders is not None else [range(len(each.ops)) for each in workers]
    meetings = [_meetings(each, order) for each, order in zip(workers, taken, strict=True)]
    return [*_follow(plan.mesh, meetings), *_state(plan, graph, workers), *_random(workers)]


def _meetings(graph: Graph, order: Sequence[int]) -> list[_Meeting]:
    """The collectives of a worker, in the order in which it comes to them."""
    if not isinstance(graph.program, Program):
        raise StowageError(f"the graph {graph.name} has no program, so its collectives are not known")
    found = []
    for number in order:
        op, call = graph.ops[number], graph.program.calls[number]
        if str(call.target).startswith(tuple(f"stowage.{name}." for name in _COLLECTIVES)):
            sent, received = graph.tensors[op.inputs[0]], graph.tensors[op.outputs[0]]
            found.append(_Meeting(op.name, str(call.target), call.args[-1], sent, received, call.args))
    return found


def _follow(mesh: Sequence[int], meetings: Sequence[Sequence[_Meeting]]) -> list[str]:
    """Let every worker run to its next collective, and on once all of its group have come."""
    places = list(product(*(range(size) for size in mesh)))
    at = [0] * len(places)
    problems: list[str] = []
    while True:
        waiting = [here < len(each) for here, each in zip(at, meetings, strict=True)]
        if not any(waiting):
            return problems
        ready = next(
            (group for worker, waits in enumerate(waiting) if waits
             and (group := _group(worker, meetings[worker][at[worker]].group, places))
             and all(waiting[other] and meetings[other][at[other]].group == meetings[worker][at[worker]].group
                     for other in group)),
            None,
        )  # fmt: skip
        if ready is None:
            stuck = [worker for worker, waits in enumerate(waiting) if waits]
            named = ", ".join(f"worker {worker} in {meetings[worker][at[worker]].op}" for worker in stuck[:_LARGEST])
            return [*problems, f"workers wait for others that never come: {named}"]
        problems += _agree(ready, [meetings[worker][at[worker]] for worker in ready])
        for worker in ready:
            at[worker] += 1


def _group(worker: int, name: str, places: Sequence[tuple[int, ...]]) -> list[int]:
    levels = {int(level) for level in name.split(",")}
    return [
        other for other, place in enumerate(places)
        if all(a == b for level, (a, b) in enumerate(zip(place, places[worker], strict=True)) if level not in levels)
    ]  # fmt: skip


def _agree(workers: Sequence[int], met: Sequence[_Meeting]) -> list[str]:
    """What workers disagree about in one collective."""
    first = met[0]
    where = (
        f"workers {', '.join(map(str, workers[:_LARGEST]))}{' ...' if len(workers) > _LARGEST else ''} at {first.op}"
    )
    if len({(each.kernel, each.sent.dtype, each.received.dtype) for each in met}) > 1:
        return [f"{where}: one makes {first.kernel} and another {met[-1].kernel}, or of another type"]
    sent = [prod(each.sent.shape) for each in met]
    received = [prod(each.received.shape) for each in met]
    if "all_reduce" in first.kernel:
        alike = len({*sent, *received}) == 1 and {each.args[2:4] for each in met} == {(first.args[2], len(met))}
        return [] if alike else [f"{where}: they reduce different sizes or in different ways"]
    if "all_gather" in first.kernel:
        counts = {tuple(each.args[2]) for each in met}
        fits = counts == {tuple(sent)} and set(received) == {sum(sent)}
        return [] if fits else [f"{where}: the parts are not those that the others gather"]
    if "reduce_scatter" in first.kernel:
        counts = {tuple(each.args[2]) for each in met}
        ranks = [each.args[3] for each in met] == list(range(len(met)))
        fits = ranks and counts == {tuple(received)} and set(sent) == {sum(received)}
        return [] if fits else [f"{where}: the parts are not those that the others keep"]
    table = [list(each.args[2]) for each in met]
    fits = all(list(each.args[3]) == [row[rank] for row in table] for rank, each in enumerate(met))
    fits = fits and sent == [sum(row) for row in table] and received == [sum(each.args[3]) for each in met]
    return [] if fits else [f"{where}: one sends more or less than another receives"]


def _state(plan: PartitionPlan, graph: Graph, workers: Sequence[Graph]) -> list[str]:
    """Parameters and optimizer state that the workers' parts do not make up, each as often as levels copy it."""
    whole = graph.program
    assert isinstance(whole, Program)
    problems = []
    for place, (tensor, key) in enumerate(whole.state):
        here = graph.tensors[tensor]
        states = zip(plan.tensors[tensor], plan.mesh, strict=True)
        copies = prod(size for state, size in states if not isinstance(state, Split))
        found = 0
        for each in workers:
            program = each.program
            if (
                not isinstance(program, Program)
                or len(program.state) != len(whole.state)
                or program.state[place][1] != key
            ):
                return [f"a worker has other state than {graph.name}"]
            found += prod(each.tensors[program.state[place][0]].shape)
        if found != copies * prod(here.shape):
            problems.append(
                f"the workers' parts of {here.name} have {found:,} elements, not {copies} x {prod(here.shape):,}"
            )
    return problems


def _random(workers: Sequence[Graph]) -> list[str]:
    """Ops that draw numbers must be the same on all workers, which begin with the same generator."""
    drawn = []
    for each in workers:
        ops = [op for op in each.ops if op.random]
        numbers = {op.id: number for number, op in enumerate(ops)}
        drawn.append([
            (op.target, numbers[op.drawn_first_by], tuple(each.tensors[tensor].shape for tensor in op.outputs))
            for op in ops
        ])  # fmt: skip
    return [] if all(each == drawn[0] for each in drawn) else ["workers draw different random numbers"]
