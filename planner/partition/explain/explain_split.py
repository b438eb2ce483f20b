"""Explains a split: what was chosen, what else there is, what each would cost in all, and why not."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import isclose

from planner.errors import StowageError, did_you_mean
from planner.graph import Graph, fingerprint
from planner.partition.explain.explanation import MovedMore, SplitAlternative, SplitExplanation
from planner.partition.handle import (
    PartitionProblem,
    PartitionSearch,
    Solution,
    axes_of,
    axis_name,
    make_partition_problem,
    solve_within_memory,
)
from planner.partition.plan import PartitionPlan
from planner.partition.search import Partitioning
from planner.partition.step_time import transfers
from planner.partition.strategy import Partial, Replicated, Split, State
from planner.units import format_bytes

#: Ops that are listed as moving more, at most.
_PLACES = 3


def explain(
    partition: PartitionSearch | PartitionPlan,
    graph: Graph | None = None,
    *,
    tensor: str | None = None,
    op: str | None = None,
) -> SplitExplanation:
    """Explain how a tensor or an op is split: every other way is pinned in turn and all the rest solved again.

    Args:
        partition: a search that has a partition, or a plan.
        graph: the step that a plan is for; a search knows its own.
        tensor, op: the name of one of them.

    Raises:
        StowageError: there is no partition yet, no such tensor or op, or the plan is for another graph.
    """
    if (tensor is None) == (op is None):
        raise StowageError("give the name of either a tensor or an op to explain, as tensor=... or op=...")
    problem, solution = _solved(partition, graph)
    name = str(op if tensor is None else tensor)
    improved = _why_not_better(partition, name)
    if tensor is not None:
        return _explain_tensor(problem, solution, name, improved)
    return _explain_op(problem, solution, name, improved)


def _solved(partition: PartitionSearch | PartitionPlan, graph: Graph | None) -> tuple[PartitionProblem, Solution]:
    if isinstance(partition, PartitionSearch):
        if partition.solution is None:
            if partition.progress.state == "done":
                partition.wait(progress=False)  # says why there is none
            raise StowageError("the search has no partition yet; wait for one")
        if graph is not None and fingerprint(graph) != fingerprint(partition.problem.graph):
            raise StowageError(f"this search is not for {graph.name}; leave the graph out")
        return partition.problem, partition.solution
    if graph is None:
        raise StowageError("a plan is explained with its graph; pass explain(plan, graph, ...)")
    if partition.fingerprint != fingerprint(graph):
        raise StowageError(f"this plan is not for {graph.name}; pass the graph that it was made for")
    problem = make_partition_problem(graph, partition.mesh, None, None, None)
    solution = problem.resolve_plan(partition)
    if not isclose(solution.bytes_moved, partition.bytes_moved, rel_tol=1e-9):
        raise StowageError("this plan does not move as many bytes as it says: search for one again")
    copied = any(
        set(solution.partitioning.tensor_states(min(group.members))) == {Replicated()} and group.sizes
        for number, group in enumerate(problem.coarse.groups) if not problem.coarse.carried[number]
    )  # fmt: skip
    return problem.with_memory(solution.memory.most) if copied else problem, solution


def _why_not_better(partition: PartitionSearch | PartitionPlan, name: str) -> str:
    """Why something that would move fewer bytes is not chosen."""
    if isinstance(partition, PartitionPlan):
        return "the plan has pins or a memory limit, or its search was stopped before it tried this"
    if name in partition.problem.pins:
        return "it is pinned; take the pin away"
    if partition.progress.state == "done":
        return "the search did not find it; pin it"
    return "let the search go on, it has not tried this yet"


def _explain_tensor(problem: PartitionProblem, solution: Solution, name: str, improved: str) -> SplitExplanation:
    graph, coarse = problem.graph, problem.coarse
    known = {tensor.name: tensor.id for tensor in reversed(graph.tensors) if tensor.base < 0}
    if name not in known:
        raise StowageError(f"{graph.name} has no tensor {name!r}{did_you_mean(name, known)}")
    number, group = known[name], coarse.group_of[known[name]]
    shape = graph.tensors[number].shape
    dimensions = sorted({split.dimension for _, split in coarse.labels[number]})
    values: list[int | str] = [*dimensions, "replicated"]
    chosen = tuple(_state_text(state) for state in solution.partitioning.tensor_states(number))
    members = {tensor for tensor in range(len(graph.tensors)) if coarse.group_of[tensor] == group}
    near = {op.id for op in graph.ops if members & {*op.inputs, *op.outputs}}
    texts = {value: f"dimension {value}" if isinstance(value, int) else value for value in values}
    others = [value for value in values if set(chosen) != {texts[value]}]
    alternatives = _alternatives(problem, solution, name, {texts[value]: value for value in others}, near, improved)
    return SplitExplanation(
        name, " x ".join(map(str, shape)) or "one number", len(coarse.groups[group].members),
        solution.trial.mesh, chosen, solution.bytes_moved,
        sum(moved_bytes(solution.partitioning, near).values()), alternatives,
    )  # fmt: skip


def _explain_op(problem: PartitionProblem, solution: Solution, name: str, improved: str) -> SplitExplanation:
    graph, coarse = problem.graph, problem.coarse
    known = {op.name: op.id for op in graph.ops}
    if name not in known:
        raise StowageError(f"{graph.name} has no op {name!r}{did_you_mean(name, known)}")
    merged = next(number for number, each in enumerate(coarse.merged) if known[name] in each.ops)
    near = set(coarse.merged[merged].ops)
    chosen = tuple(axis_name(variant) for variant in solution.partitioning.op_variants(known[name]))
    others: dict[str, int | str] = {axis: axis for axis in axes_of(coarse, merged) if set(chosen) != {axis}}
    return SplitExplanation(
        name, graph.ops[known[name]].target, len(near), solution.trial.mesh, chosen, solution.bytes_moved,
        sum(moved_bytes(solution.partitioning, near).values()),
        _alternatives(problem, solution, name, others, near, improved),
    )  # fmt: skip


def _alternatives(
    problem: PartitionProblem,
    solution: Solution,
    name: str,
    values: dict[str, int | str],
    near: Collection[int],
    improved: str,
) -> tuple[SplitAlternative, ...]:
    here = moved_bytes(solution.partitioning, range(len(problem.graph.ops)))
    found = []
    for text, value in values.items():
        pins = {other: pin for other, pin in problem.pins.items() if other != name}
        try:
            other = solve_within_memory(
                problem.with_pins({**pins, name: value}), solution.trial.mesh, solution.trial.price
            )  # fmt: skip
        except StowageError as error:
            found.append(SplitAlternative(text, None, 0.0, 0.0, 0, False, (), f"not possible: {error}"))
            continue
        there = moved_bytes(other.partitioning, range(len(problem.graph.ops)))
        found.append(_compare(problem, solution, text, other, here, there, near, improved))
    return tuple(sorted(found, key=lambda one: (one.bytes_moved is None, one.bytes_moved or 0.0)))


def _compare(
    problem: PartitionProblem, solution: Solution, text: str, other: Solution, here: dict[int, float],
    there: dict[int, float], near: Collection[int], improved: str,
) -> SplitAlternative:  # fmt: skip
    extra = other.bytes_moved - solution.bytes_moved
    before, after = (sum(moved.get(op, 0.0) for op in near) for moved in (here, there))
    more = sorted(((there.get(op, 0.0) - here.get(op, 0.0), op) for op in {*here, *there}), reverse=True)
    places = tuple(MovedMore(problem.graph.ops[op].name, size) for size, op in more[:_PLACES] if size > 0)
    limit = problem.memory
    if limit is not None and other.memory.most > limit:
        reason = f"a worker would take {format_bytes(other.memory.most)}, and {format_bytes(limit)} are allowed"
    elif extra <= 0:
        reason = f"as good: {format_bytes(other.bytes_moved)} a step" if extra == 0 else (
            f"{format_bytes(-extra)} less a step: {improved}"
        )  # fmt: skip
    else:
        reason = f"{format_bytes(extra)} more a step: "
        if after < before:
            saved = format_bytes(before - after)
            reason += f"it saves {saved} at ops that use it, and costs more elsewhere, {_most_of(places)}"
        else:
            reason += f"{format_bytes(after - before)} of them at ops that use it, {_most_of(places)}"
    return SplitAlternative(
        text, other.bytes_moved, extra, after, other.memory.most, after < before, places, reason
    )  # fmt: skip


def _most_of(places: Sequence[MovedMore]) -> str:
    return f"most at {places[0].op}" if places else "spread over many ops"


def moved_bytes(found: Partitioning, ops: Collection[int]) -> dict[int, float]:
    """By op, the bytes that all workers together receive for it; a fetch that several ops share is the first one's.

    Args:
        found: a partition.
        ops: which ops.
    """
    wanted, seen, total = set(ops), set(), dict[int, float]()
    for op, moved in enumerate(transfers(found)):
        parts = [*moved.stages, *(part for _, transfer in moved.stores for part in transfer)]
        for _, key, transfer in moved.fetches:
            if key not in seen:
                seen.add(key)
                parts += transfer
        if op in wanted and parts:
            total[op] = sum(part.bytes for part in parts)
    return total


def _state_text(state: State | None) -> str:
    if isinstance(state, Split):
        return f"dimension {state.dimension}"
    return "partial sums" if isinstance(state, Partial) else "replicated" if isinstance(state, Replicated) else "whole"
