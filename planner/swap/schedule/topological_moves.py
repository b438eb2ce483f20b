"""Moves ops within an order while keeping every dependency."""

from __future__ import annotations

import numpy as np

from planner.graph import Csr
from planner.jit import kernel
from planner.swap.problem.heap import pop, push
from planner.swap.problem.problem import Ints, Seconds


@kernel
def by_key(before: Csr, after: Csr, key: Seconds) -> Ints:
    """The order that always takes the op of smallest key among those whose predecessors are done.

    Args:
        before, after: predecessors and successors of each op.
        key: `[ops]`; if the keys are positions in a legal order, the result is that order.
    """
    n = key.shape[0]
    start, items = after.start, after.items
    missing_count = np.empty(n, np.int32)
    heap = np.empty(n, np.int32)
    order = np.empty(n, np.int32)
    size = 0
    for op in range(n):
        missing_count[op] = before.start[op + 1] - before.start[op]
        if missing_count[op] == 0:
            size = push(heap, size, key, op)
    for i in range(n):
        op, size = pop(heap, size, key)
        order[i] = op
        for k in range(start[op], start[op + 1]):
            follower = items[k]
            missing_count[follower] -= 1
            if missing_count[follower] == 0:
                size = push(heap, size, key, follower)
    return order


@kernel
def pull(before: Csr, position: Ints, key: Seconds, op: int, target: float) -> None:
    """Set keys so that an op and all it waits for come no later than `target`, in their present relative order."""
    n = position.shape[0]
    stack = np.empty(n, np.int32)
    seen = np.zeros(n, np.bool_)
    stack[0], depth = op, 1
    seen[op] = True
    while depth > 0:
        depth -= 1
        at = stack[depth]
        key[at] = target - 0.5 + 0.4 * position[at] / n
        for k in range(before.start[at], before.start[at + 1]):
            earlier = before.items[k]
            if not seen[earlier] and position[earlier] > target:
                seen[earlier] = True
                stack[depth] = earlier
                depth += 1
