"""Proven lower bounds on the time of any plan, whatever its order; they show when to stop searching.

Cut a step at one op. What its ancestors wrote and it or its descendants still use is live at that moment; what does
not fit on the device has gone out over the link before it, in parallel with the ancestors' compute, and comes back
after it, in parallel with the descendants' compute, together with the parameters they use that did not fit either. No
order avoids it; but a plan in which ops run again does, so for such plans only the bounds without a cut hold.
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
    """Lower bound in seconds on any plan within a budget that runs each op once, whatever its order and swaps.

    Args:
        graph, machine: what is planned, and where it runs.
        budget: device bytes.
        seconds: `[ops]`, how long each op runs.

    Raises:
        StowageError: the op times or the figures of the host link are impossible.
    """
    return bound_of(build_problem(graph, machine, budget, seconds))


def recomputing_bound_of(problem: Problem) -> float:
    """Lower bound in seconds on any plan, also on those in which ops run again: from compute and live-in storages."""
    least = _persistent_bound(problem.arrays, problem.sizes, problem.arena_budget, problem.link)
    return max(problem.ideal_seconds, least)


def bound_of(problem: Problem) -> float:
    """`lower_bound` of a problem: the largest of the bounds from compute, live-in storages and cuts."""
    graph, sizes = problem.graph, problem.sizes
    writer = np.full(problem.storages, -1, np.int32)
    for op in reversed(range(problem.ops)):
        writer[list(graph.writes[op])] = op
    before = graph.dependencies
    problem.stop.check()
    cut_bound = _cut_bound(
        _cuts(problem), problem.arrays, sizes, writer, csr(before), csr(inverted(before)), problem.compute_seconds,
        problem.arena_budget, problem.link, problem.stop.flag,
    )  # fmt: skip
    problem.stop.check()
    return max(recomputing_bound_of(problem), cut_bound)


def _persistent_bound(arrays: ProblemArrays, sizes: Bytes, budget: int, link: LinkModel) -> float:
    """Live-in storages that are used and do not fit come in once a step; updated persistent ones also go out again."""
    used = np.zeros(len(sizes), np.bool_)
    used[arrays.touches.items] = True
    bytes_in = max(0, int(sizes[used & arrays.live_in].sum()) - budget)
    bytes_out = max(0, int(sizes[used & arrays.persistent & arrays.updated].sum()) - budget)
    return float(_copy_seconds(bytes_in, bytes_out, link))


def _cuts(problem: Problem) -> Ints:
    """Ops to cut at: those where most is live in captured order, and some spread over the step."""
    live = uses_of(np.arange(problem.ops, dtype=np.int32), problem.arrays).live
    fullest = np.argsort(-live, kind="stable")[: _CUTS // 2]
    spread = np.linspace(0, problem.ops - 1, min(problem.ops, _CUTS // 2)).astype(np.int64)
    return np.unique(np.concatenate([fullest, spread])).astype(np.int32)


@kernel
def both_ways(link: LinkModel) -> float:
    """The share of the lesser direction's work that adds to the time of the greater's.

    While both directions are busy each does `shared` of its work; so a greater work `a` and a lesser `b` take
    `b / shared` seconds side by side and `a - b` alone, or else, on a link that shares badly, one after the other.
    """
    return min(1.0, 1 / link.shared - 1)


@kernel
def _copy_seconds(bytes_in: int, bytes_out: int, link: LinkModel) -> float:
    """Lower bound in seconds on copying this many bytes each way."""
    larger, smaller = max(bytes_in, bytes_out), min(bytes_in, bytes_out)
    return (larger + both_ways(link) * smaller) / link.bandwidth


@kernel
def reach(op: int, edges: Csr, reached: Flags, stack: Ints) -> None:
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
    arrays: ProblemArrays,
    sizes: Bytes,
    writer: Ints,
    before: Csr,
    after: Csr,
    seconds: Seconds,
    budget: int,
    link: LinkModel,
    stop: Flag,
) -> float:
    """The largest bound of all cuts, in seconds."""
    n, m = seconds.shape[0], sizes.shape[0]
    ancestors, descendants = np.empty(n, np.bool_), np.empty(n, np.bool_)
    stack = np.empty(n, np.int32)
    touched_before, touched_after = np.empty(m, np.bool_), np.empty(m, np.bool_)
    best = 0.0
    for cut in cuts:
        if stop[0] != 0:
            break
        reach(cut, before, ancestors, stack)
        reach(cut, after, descendants, stack)
        descendants[cut] = True
        touched_before[:] = False
        touched_after[:] = False
        seconds_before = seconds_after = 0.0
        for op in range(n):
            if not ancestors[op] and not descendants[op]:
                continue
            for k in range(arrays.touches.start[op], arrays.touches.start[op + 1]):
                s = arrays.touches.items[k]
                if ancestors[op]:
                    touched_before[s] = True
                else:
                    touched_after[s] = True
            if ancestors[op]:
                seconds_before += seconds[op]
            else:
                seconds_after += seconds[op]
        live = live_in_before = live_in_after = 0
        for s in range(m):
            if arrays.live_in[s]:
                live_in_before += sizes[s] if touched_before[s] else 0
                live_in_after += sizes[s] if touched_after[s] else 0
            elif touched_after[s] and writer[s] >= 0 and ancestors[writer[s]]:
                live += sizes[s]
        bytes_out = max(0, live - budget)
        seconds_before = max(seconds_before, _copy_seconds(max(0, live_in_before - budget), bytes_out, link))
        seconds_after = max(seconds_after, _copy_seconds(max(0, live + live_in_after - budget), 0, link))
        best = max(best, seconds_before + seconds_after)
    return best
