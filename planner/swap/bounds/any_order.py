"""A proven lower bound on the time of any plan, whatever its order; it shows when to stop searching.

Cut a step at one op. What its ancestors wrote and it or its descendants still use is live at that moment; what does
not fit on the device has gone out over the link before it, in parallel with the ancestors' compute, and comes back
after it, in parallel with the descendants' compute, together with the parameters they use that did not fit either. No
order avoids it.
"""

from __future__ import annotations

import numpy as np

from planner.cancel import Flag
from planner.graph import Csr, Graph, csr, inverted
from planner.jit import kernel
from planner.machine import Machine
from planner.swap.problem.problem import (
    Bytes,
    Flags,
    Ints,
    LinkModel,
    Problem,
    ProblemArrays,
    Seconds,
    build_problem,
)
from planner.swap.problem.uses import uses_of

_CUTS = 400


def lower_bound(graph: Graph, machine: Machine, budget: int, seconds: Seconds) -> float:
    """Lower bound in seconds on any plan within a budget, whatever its order and however it swaps.

    Args:
        graph, machine: what is planned, and where it runs.
        budget: device bytes.
        seconds: `[ops]`, how long each op runs.

    Raises:
        StowageError: the op times or the figures of the host link are impossible.
    """
    return bound_of(build_problem(graph, machine, budget, seconds))


def bound_of(problem: Problem) -> float:
    """`lower_bound` of a problem: the largest of the bounds from compute, live-in storages and cuts."""
    graph = problem.graph
    sizes = np.array([storage.bytes for storage in graph.storages], np.int64)
    writer = np.full(problem.storages, -1, np.int32)
    for op in reversed(range(problem.ops)):
        writer[list(graph.writes[op])] = op
    compute = problem.ideal_seconds
    steady = _persistent_bound(problem.flow, sizes, problem.budget, problem.copies)
    before = graph.dependencies
    problem.stop.check()
    cut = _cut_bound(
        _cuts(problem), problem.flow, sizes, writer, csr(before), csr(inverted(before)), problem.seconds,
        problem.budget, problem.copies, problem.stop.flag,
    )  # fmt: skip
    problem.stop.check()
    return max(compute, steady, cut)


def _persistent_bound(flow: ProblemArrays, sizes: Bytes, budget: int, copies: LinkModel) -> float:
    """Live-in storages that are used and do not fit come in once a step; updated persistent ones also go out again."""
    used = np.zeros(len(sizes), np.bool_)
    used[flow.touches.items] = True
    inwards = max(0, int(sizes[used & flow.live_in].sum()) - budget)
    outwards = max(0, int(sizes[used & flow.persistent & flow.updated].sum()) - budget)
    return float(_copying(inwards, outwards, copies))


def _cuts(problem: Problem) -> Ints:
    """Ops to cut at: those where most is live in captured order, and some spread over the step."""
    live = uses_of(np.arange(problem.ops, dtype=np.int32), problem.flow).live
    fullest = np.argsort(-live, kind="stable")[: _CUTS // 2]
    spread = np.linspace(0, problem.ops - 1, min(problem.ops, _CUTS // 2)).astype(np.int64)
    return np.unique(np.concatenate([fullest, spread])).astype(np.int32)


@kernel
def both_ways(copies: LinkModel) -> float:
    """The share of the lesser direction's work that adds to the time of the greater's.

    While both directions are busy each does `shared` of its work; so a greater work `a` and a lesser `b` take
    `b / shared` seconds side by side and `a - b` alone, or else, on a link that shares badly, one after the other.
    """
    return min(1.0, 1 / copies.shared - 1)


@kernel
def _copying(inwards: int, outwards: int, copies: LinkModel) -> float:
    """Lower bound in seconds on copying this many bytes each way."""
    more, less = max(inwards, outwards), min(inwards, outwards)
    return (more + both_ways(copies) * less) / copies.bandwidth


@kernel
def _reach(op: int, edges: Csr, reached: Flags, stack: Ints) -> None:
    """Mark all ops that can be reached from an op, excluding the op itself."""
    reached[:] = False
    stack[0], depth = op, 1
    while depth > 0:
        depth -= 1
        at = stack[depth]
        for k in range(edges.start[at], edges.start[at + 1]):
            following = edges.items[k]
            if not reached[following]:
                reached[following] = True
                stack[depth] = following
                depth += 1


@kernel
def _cut_bound(
    cuts: Ints,
    flow: ProblemArrays,
    sizes: Bytes,
    writer: Ints,
    before: Csr,
    after: Csr,
    seconds: Seconds,
    budget: int,
    copies: LinkModel,
    stop: Flag,
) -> float:
    """The largest bound of all cuts, in seconds."""
    n, m = seconds.shape[0], sizes.shape[0]
    ancestors, descendants = np.empty(n, np.bool_), np.empty(n, np.bool_)
    stack = np.empty(n, np.int32)
    early, late = np.empty(m, np.bool_), np.empty(m, np.bool_)
    best = 0.0
    for cut in cuts:
        if stop[0] != 0:
            break
        _reach(cut, before, ancestors, stack)
        _reach(cut, after, descendants, stack)
        descendants[cut] = True
        early[:] = False
        late[:] = False
        first = second = 0.0
        for op in range(n):
            if not ancestors[op] and not descendants[op]:
                continue
            for k in range(flow.touches.start[op], flow.touches.start[op + 1]):
                s = flow.touches.items[k]
                if ancestors[op]:
                    early[s] = True
                else:
                    late[s] = True
            if ancestors[op]:
                first += seconds[op]
            else:
                second += seconds[op]
        live = held_early = held_late = 0
        for s in range(m):
            if flow.live_in[s]:
                held_early += sizes[s] if early[s] else 0
                held_late += sizes[s] if late[s] else 0
            elif late[s] and writer[s] >= 0 and ancestors[writer[s]]:
                live += sizes[s]
        out = max(0, live - budget)
        first = max(first, _copying(max(0, held_early - budget), out, copies))
        second = max(second, _copying(max(0, live + held_late - budget), 0, copies))
        best = max(best, first + second)
    return best
