"""Base orders of the ops; each respects every dependency."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from planner.graph import Graph, Kind, Op, Phase, inverted
from planner.swap.problem.problem import Flags, Ints, Problem

Ids = NDArray[np.int64]

_made: WeakKeyDictionary[Problem, dict[str, Ints]] = WeakKeyDictionary()


def base_orders(problem: Problem) -> Iterator[tuple[str, Ints]]:
    """The orders to start from, each once, with its name: captured, eager optimizer ops, one module at a time.

    They are made only as they are asked for, and once for a problem; nobody may change them.
    """
    seen: set[bytes] = set()
    made = _made.setdefault(problem, {})
    for name, make in (("captured", captured), ("sunk", eager_optimizer_order), ("grouped", parameter_grouped_order)):
        problem.stop.check()
        if name not in made:
            made[name] = make(problem)
        order = made[name]
        if order.tobytes() not in seen:
            seen.add(order.tobytes())
            yield name, order


def captured(problem: Problem) -> Ints:
    """The order in which the ops were captured."""
    return np.arange(problem.ops, dtype=np.int32)


def eager_optimizer_order(problem: Problem) -> Ints:
    """The captured order with every optimizer op as early as its inputs allow.

    A gradient then dies right after it is computed and a parameter leaves the device once instead of twice.
    """
    not_optimizer = np.array([op.phase is not Phase.OPTIMIZER for op in problem.nodes], np.bool_)
    return _by_group(problem, np.zeros(problem.ops, np.int64), not_optimizer)


def parameter_grouped_order(problem: Problem) -> Ints:
    """The order that keeps to the parameters of one module while an op that needs them is ready, with updates first.

    Worth most where few parameters are used many times, as in an unrolled recurrent network.
    """
    not_optimizer = np.array([op.phase is not Phase.OPTIMIZER for op in problem.nodes], np.bool_)
    return _by_group(problem, _groups(problem.graph)[problem.op_of], not_optimizer)


def _groups(graph: Graph) -> Ids:
    """The largest parameter that each op reads, writes or computes the gradient of; -1 if there is none."""
    sizes = [storage.bytes for storage in graph.storages]
    parameters = {storage.id for storage in graph.storages if storage.kind is Kind.PARAMETER}
    groups = np.full(len(graph.ops), -1, np.int64)
    of_module: dict[str, int] = {}
    for op in graph.ops:
        own = parameters.intersection((*graph.reads[op.id], *graph.writes[op.id]))
        if own:
            groups[op.id] = largest = max(sorted(own), key=sizes.__getitem__)
            if op.phase is Phase.FORWARD:
                of_module[op.module] = max(of_module.get(op.module, largest), largest, key=sizes.__getitem__)
    for op in graph.ops:
        if groups[op.id] < 0 and op.phase is Phase.BACKWARD and op.module in of_module:
            parameter = of_module[op.module]
            if sizes[parameter] in {sizes[storage] for storage in graph.writes[op.id]}:
                groups[op.id] = parameter
    return groups


def _by_group(problem: Problem, groups: Ids, not_optimizer: Flags) -> Ints:
    """List scheduling: ops without a group first, then the current group, then the group whose op is earliest.

    Optimizer ops that need no gradient are delayed until another op needs their results.
    """
    before = [column.tolist() for column in np.split(problem.predecessors.items, problem.predecessors.start[1:-1])]
    after = inverted(before)
    deferred = _needs_no_gradient(problem.nodes, before)
    missing_count = [sum(not deferred[earlier] for earlier in ops) for ops in before]
    ready: dict[int, list[tuple[bool, int]]] = {}
    group_heads: list[tuple[int, int]] = []  # the first op of a group, and the group; some entries are stale
    order: list[int] = []
    done = [False] * problem.ops

    def push(op: int) -> None:
        group = ready.setdefault(int(groups[op]), [])
        heapq.heappush(group, (bool(not_optimizer[op]), op))
        if group[0][1] == op:
            heapq.heappush(group_heads, (op, int(groups[op])))

    def emit(op: int) -> None:
        stack = [op]
        while stack:
            missing = [earlier for earlier in before[stack[-1]] if not done[earlier]]
            if missing:
                stack += reversed(missing)
            elif done[stack[-1]]:
                stack.pop()
            else:
                done[stack[-1]] = True
                order.append(stack.pop())

    for op in range(problem.ops):
        if not missing_count[op] and not deferred[op]:
            push(op)
    current = -1
    while True:
        problem.stop.check()
        if ready.get(-1):
            group = -1
        elif ready.get(current):
            group = current
        else:
            while group_heads and (not ready[group_heads[0][1]] or ready[group_heads[0][1]][0][1] != group_heads[0][0]):
                heapq.heappop(group_heads)
            if not group_heads:
                break
            current = group = group_heads[0][1]
        _, op = heapq.heappop(ready[group])
        emit(op)
        for follower in after[op]:
            missing_count[follower] -= 1
            if not missing_count[follower] and not deferred[follower]:
                push(follower)
    for op in range(problem.ops):
        emit(op)
    return np.array(order, np.int32)


def _needs_no_gradient(nodes: Sequence[Op], before: list[list[int]]) -> list[bool]:
    """Per op, whether it and all ops before it are optimizer ops, such as the decay of a momentum."""
    found: list[bool] = []
    for op, earlier in zip(nodes, before, strict=True):
        found.append(op.phase is Phase.OPTIMIZER and all(found[one] for one in earlier))
    return found
