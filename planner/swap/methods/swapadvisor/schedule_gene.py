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
    child, in_child = np.empty(n, np.int32), np.zeros(n, np.bool_)
    for i in range(cut):
        child[i] = first[i]
        in_child[first[i]] = True
    next_slot = cut
    for op in then:
        if not in_child[op]:
            child[next_slot] = op
            next_slot += 1
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
    child, place, missing_count = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    ready, position_in_ready = (
        np.empty(n, np.int32),
        np.full(n, -1, np.int32),
    )  # the ready ops in no order, and each one's position
    queue = np.empty(n, np.int32)
    count = queued = 0
    for i in range(n):
        place[parent[i]] = i
    for op in range(n):
        missing_count[op] = predecessors.start[op + 1] - predecessors.start[op]
        if missing_count[op] == 0:
            ready[count], position_in_ready[op] = op, count
            count += 1
            queued = push(queue, queued, place, op)
    for i in range(n):
        op = -1
        if uniforms[0, i] < probability:
            op = ready[min(int(uniforms[1, i] * count), count - 1)]
        else:
            while op < 0 or position_in_ready[op] < 0:  # ops that were taken at random remain in the queue
                op, queued = pop(queue, queued, place)
        child[i] = op
        count -= 1
        ready[position_in_ready[op]] = ready[count]
        position_in_ready[ready[count]] = position_in_ready[op]
        position_in_ready[op] = -1
        for k in range(successors.start[op], successors.start[op + 1]):
            follower = successors.items[k]
            missing_count[follower] -= 1
            if missing_count[follower] == 0:
                ready[count], position_in_ready[follower] = follower, count
                count += 1
                queued = push(queue, queued, place, follower)
    return child
