"""Which budgets can be met at all, and what to say where one cannot."""

from __future__ import annotations

import numpy as np

from planner.errors import StowageError
from planner.memory import format_apart
from planner.swap.problem import Bytes, Problem


def working_sets(problem: Problem) -> Bytes:
    """`[ops]`, the aligned bytes that each op reads and writes, temporary memory included."""
    flow, graph = problem.flow, problem.graph
    return np.array(
        [
            sum(int(flow.bytes[s]) for s in {*graph.reads[op.id], *graph.writes[op.id], op.workspace} if s >= 0)
            for op in graph.ops
        ],
        np.int64,
    )


def least_budget(problem: Problem, step_peak_bytes: int) -> int:
    """The smallest budget that there is a plan for: the largest working set, or the whole step if smaller."""
    return min(int(working_sets(problem).max(initial=1)), step_peak_bytes)


def refuse(problem: Problem, least: int) -> StowageError:
    """What to say where a budget is below the least."""
    sets = working_sets(problem)
    op = problem.graph.ops[int(sets.argmax())]
    budget, alone, enough = format_apart(problem.budget, int(sets.max()), least)
    share = ' (a bare number is bytes; write "40%" for a share of what the step takes)' if problem.budget < 4096 else ""
    return StowageError(
        f"a budget of {budget} is too small{share}: {op.name} ({op.target}) alone works on {alone}; "
        f"allow at least {least} bytes ({enough})"
    )
