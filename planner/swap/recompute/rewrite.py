"""A problem in which chosen ops run again, just before what they make is first needed beyond the forward pass.

What runs again makes storages of its own, so every planner plans the rewritten problem as it does any other: a storage
is dropped after its last use in the forward pass, and its second instance begins to live when it is made anew.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from planner.graph import Csr
from planner.jit import kernel
from planner.swap.problem.problem import Flags, Ints, Problem, ProblemArrays
from planner.swap.recompute.forward_pass import ForwardPass
from planner.swap.schedule.topological_moves import by_key


class _Instances(NamedTuple):
    """The instances of ops in order, and what each touches.

    `op` and `again` say which op each instance is of, and whether it is its second. `consumer` is the op for which a
    second instance was inserted. `storage_of` lists the storages behind the instances, first those of the graph.
    """

    op: Ints
    again: Flags
    consumer: Ints
    storage_of: Ints
    touch_start: Ints
    touch_items: Ints
    touch_writes: Flags
    overwrite_start: Ints
    overwrite_items: Ints
    creates: Ints


class Rewritten(NamedTuple):
    """A problem in which ops run again, and its order with the optimizer's ops as early as they can come."""

    problem: Problem
    order: Ints


def rewrite(problem: Problem, forward: ForwardPass, chosen: Flags) -> Rewritten:
    """The problem in which the chosen groups run again.

    Args:
        problem: one in which each op has one instance.
        forward: its forward pass.
        chosen: `[groups]`, which run again; those that are not repeatable must not.
    """
    arrays = problem.arrays
    instances = _instances(
        forward.sequence, forward.forward, forward.group_of, forward.groups, chosen, arrays.touches, arrays.writes,
        forward.first_only, arrays.overwrites, arrays.creates,
    )  # fmt: skip
    starts, before = _edges(
        instances.op, instances.again, problem.predecessors, arrays.touches, arrays.writes & ~forward.first_only,
        instances.touch_start, instances.touch_items, problem.storages,
    )  # fmt: skip
    predecessors = Csr(starts, before)
    storage_of = instances.storage_of
    copies = np.arange(len(storage_of)) >= problem.storages

    def first_only(flags: Flags) -> Flags:
        return np.asarray(flags[storage_of] & ~copies, np.bool_)

    rewritten = ProblemArrays(
        touches=Csr(instances.touch_start, instances.touch_items),
        writes=instances.touch_writes,
        overwrites=Csr(instances.overwrite_start, instances.overwrite_items),
        creates=instances.creates,
        bytes=arrays.bytes[storage_of],
        live_in=first_only(arrays.live_in),
        persistent=first_only(arrays.persistent),
        updated=arrays.updated[storage_of],
        live_out=first_only(arrays.live_out),
    )
    successors = Csr(*_inverted(starts, before))
    places = np.arange(len(instances.op)) / max(1, len(instances.op))
    key = np.where(instances.again, forward.rank[instances.consumer] - 0.9 + 0.8 * places, forward.rank[instances.op])
    found = replace(
        problem, arrays=rewritten, predecessors=predecessors, successors=successors,
        seconds=problem.seconds[instances.op], op_of=instances.op, storage_of=problem.storage_of[storage_of],
    )  # fmt: skip
    return Rewritten(found, by_key(predecessors, successors, key))


@kernel
def _instances(
    sequence: Ints,
    forward: Flags,
    group_of: Ints,
    groups: Csr,
    chosen: Flags,
    touches: Csr,
    writes: Flags,
    first_only: Flags,
    overwrites: Csr,
    creates: Ints,
) -> _Instances:
    """List all instances in captured order, each second one just before its first use beyond the forward pass."""
    n, m, entries = sequence.shape[0], group_of.shape[0], touches.items.shape[0]
    op_of, again, consumer = np.empty(2 * n, np.int32), np.zeros(2 * n, np.bool_), np.full(2 * n, -1, np.int32)
    storage_of = np.empty(2 * m, np.int32)
    storage_of[:m] = np.arange(m)
    touch_start, overwrite_start = np.zeros(2 * n + 1, np.int32), np.zeros(2 * n + 1, np.int32)
    touch_items, touch_writes = np.empty(2 * entries, np.int32), np.empty(2 * entries, np.bool_)
    overwrite_items, made = np.empty(2 * overwrites.items.shape[0], np.int32), np.full(2 * n, -1, np.int32)
    current = np.arange(m).astype(np.int32)  # by storage, the instance that whoever comes next finds
    position = np.empty(n, np.int32)
    position[sequence] = np.arange(n)
    done = np.zeros(chosen.shape[0], np.bool_)
    wanted = np.empty(n, np.int32)  # positions of the ops that run again before the next op
    stack = np.empty(chosen.shape[0] + 1, np.int32)
    count, storages = 0, m
    for op in sequence:
        depth = found = 0
        if not forward[op]:
            for k in range(touches.start[op], touches.start[op + 1]):
                group = group_of[touches.items[k]]
                if group >= 0 and chosen[group] and not done[group]:
                    stack[depth], done[group] = group, True
                    depth += 1
        while depth > 0:
            depth -= 1
            group = stack[depth]
            for g in range(groups.start[group], groups.start[group + 1]):
                maker = groups.items[g]
                wanted[found] = position[maker]
                found += 1
                for k in range(touches.start[maker], touches.start[maker + 1]):
                    other = group_of[touches.items[k]]
                    if other >= 0 and chosen[other] and not done[other]:
                        stack[depth], done[other] = other, True
                        depth += 1
        wanted[:found] = np.sort(wanted[:found])
        for each in range(found + 1):
            last = each == found
            node = op if last else sequence[wanted[each]]
            op_of[count], again[count] = node, not last
            if not last:
                consumer[count] = op
            entry = touch_start[count]
            for k in range(touches.start[node], touches.start[node + 1]):
                s = touches.items[k]
                if not last and first_only[k]:
                    continue
                if not last and writes[k] and current[s] == s:
                    current[s] = storages
                    storage_of[storages] = s
                    storages += 1
                touch_items[entry], touch_writes[entry] = current[s], writes[k]
                entry += 1
            touch_start[count + 1] = entry
            entry = overwrite_start[count]
            for k in range(overwrites.start[node], overwrites.start[node + 1]):
                overwrite_items[entry] = current[overwrites.items[k]]
                entry += 1
            overwrite_start[count + 1] = entry
            made[count] = current[creates[node]] if creates[node] >= 0 else -1
            count += 1
    return _Instances(
        op_of[:count],
        again[:count],
        consumer[:count],
        storage_of[:storages],
        touch_start[: count + 1],
        touch_items[: touch_start[count]],
        touch_writes[: touch_start[count]],
        overwrite_start[: count + 1],
        overwrite_items[: overwrite_start[count]],
        made[:count],
    )


@kernel
def _edges(
    op_of: Ints,
    again: Flags,
    predecessors: Csr,
    touches: Csr,
    writes: Flags,
    touch_start: Ints,
    touch_items: Ints,
    storages: int,
) -> tuple[Ints, Ints]:
    """Per instance, those before it: of its op's predecessors, and of what uses the storages that it makes anew."""
    count = op_of.shape[0]
    ops = predecessors.start.shape[0] - 1
    user_start = np.zeros(storages + 1, np.int32)  # by storage of the graph, who uses its first instance
    for i in range(count):
        for k in range(touch_start[i], touch_start[i + 1]):
            if touch_items[k] < storages:
                user_start[touch_items[k] + 1] += 1
    user_start[:] = np.cumsum(user_start)
    users, filled = np.empty(user_start[storages], np.int32), user_start[:-1].copy()
    for i in range(count):
        for k in range(touch_start[i], touch_start[i + 1]):
            s = touch_items[k]
            if s < storages:
                users[filled[s]] = i
                filled[s] += 1
    room = 0
    for i in range(count):
        op = op_of[i]
        room += 2 * (predecessors.start[op + 1] - predecessors.start[op])
        if again[i]:
            for k in range(touches.start[op], touches.start[op + 1]):
                if writes[k]:
                    s = touches.items[k]
                    room += user_start[s + 1] - user_start[s]
    starts, items = np.zeros(count + 1, np.int32), np.empty(room, np.int32)
    first, second = np.full(ops, -1, np.int32), np.full(ops, -1, np.int32)
    entry = 0
    for i in range(count):
        op = op_of[i]
        for k in range(predecessors.start[op], predecessors.start[op + 1]):
            earlier = predecessors.items[k]
            items[entry] = first[earlier]
            entry += 1
            if second[earlier] >= 0:
                items[entry] = second[earlier]
                entry += 1
        if again[i]:
            for k in range(touches.start[op], touches.start[op + 1]):
                if writes[k]:
                    s = touches.items[k]
                    for u in range(user_start[s], user_start[s + 1]):
                        items[entry] = users[u]
                        entry += 1
            second[op] = i
        else:
            first[op] = i
        starts[i + 1] = entry
    return starts, items[:entry]


@kernel
def _inverted(start: Ints, items: Ints) -> tuple[Ints, Ints]:
    """Per op, those after it, from those before each."""
    count = start.shape[0] - 1
    starts = np.zeros(count + 1, np.int32)
    for one in items:
        starts[one + 1] += 1
    starts[:] = np.cumsum(starts)
    result, filled = np.empty(items.shape[0], np.int32), starts[:-1].copy()
    for i in range(count):
        for k in range(start[i], start[i + 1]):
            result[filled[items[k]]] = i
            filled[items[k]] += 1
    return starts, result
