"""The schedule gene: an order of the ops, its crossover and its mutation (SwapAdvisor, ASPLOS 2020, section 4.3)."""

from __future__ import annotations

import numpy as np

from planner.graph import Csr
from planner.jit import kernel
from planner.swap.problem.heap import pop, push
from planner.swap.problem.problem import Ints, Seconds


@kernel
def cross_schedules(first: Ints, then: Ints, cut: int) -> Ints:
    """The first `cut` ops of one parent, then the rest in the order of the other.

    Respects every dependency that both parents respect: figure 4 of the paper.
    """
    n = len(first)
    child, required_reuse = np.empty(n, np.int32), np.zeros(n, np.bool_)
    for i in range(cut):
        child[i] = first[i]
        required_reuse[first[i]] = True
    at = cut
    for op in then:
        if not required_reuse[op]:
            child[at] = op
            at += 1
    return child


@kernel
def mutate_schedule(parent: Ints, predecessors: Csr, successors: Csr, probability: float, uniforms: Seconds) -> Ints:
    """Replay an order with a set of ready ops, sometimes taking a random one.

    Args:
        parent: `[ops]`, an order; any if `probability` is 1, when the result is a random order.
        predecessors, successors: what must come before and after each op.
        probability: of taking any ready op instead of the one that comes first in the parent.
        uniforms: `[2, ops]`, uniform in [0, 1): whether to take any, and which.
    """
    n = len(parent)
    child, place, waits = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    ready, where = np.empty(n, np.int32), np.full(n, -1, np.int32)  # the ready ops in no order, and each one's position
    queue = np.empty(n, np.int32)
    count = queued = 0
    for i in range(n):
        place[parent[i]] = i
    for op in range(n):
        waits[op] = predecessors.start[op + 1] - predecessors.start[op]
        if waits[op] == 0:
            ready[count], where[op] = op, count
            count += 1
            queued = push(queue, queued, place, op)
    for i in range(n):
        op = -1
        if uniforms[0, i] < probability:
            op = ready[min(int(uniforms[1, i] * count), count - 1)]
        else:
            while op < 0 or where[op] < 0:  # ops that were taken at random remain in the queue
                op, queued = pop(queue, queued, place)
        child[i] = op
        count -= 1
        ready[where[op]] = ready[count]
        where[ready[count]] = where[op]
        where[op] = -1
        for k in range(successors.start[op], successors.start[op + 1]):
            after = successors.items[k]
            waits[after] -= 1
            if waits[after] == 0:
                ready[count], where[after] = after, count
                count += 1
                queued = push(queue, queued, place, after)
    return child
