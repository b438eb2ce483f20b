"""About how long a step takes, swapped into a budget, before a plan is searched for."""

from __future__ import annotations

from math import inf

from planner.cancel import CancelToken
from planner.graph import Graph
from planner.machine import Machine
from planner.swap.methods.candidate import Candidate, Evaluator
from planner.swap.problem.problem import Seconds, build_problem
from planner.swap.schedule.budget_feasibility import orders


def estimated_seconds(graph: Graph, machine: Machine, budget: int, seconds: Seconds, stop: CancelToken) -> float:
    """About how many seconds a step takes by a good plan: the fastest of a few eviction passes, which is not placed.

    Args:
        graph, machine: what is planned, and where it runs; the host's memory has no end.
        budget: device bytes.
        seconds: `[ops]`, how long each op runs.
        stop: checked between the passes.

    Returns:
        Infinity where no pass fits.

    Raises:
        StowageError: the op times or the figures of the host link are impossible.
        Cancelled: cancellation was requested.
    """
    problem = build_problem(graph, machine, budget, seconds, stop)
    evaluator = Evaluator(problem)
    candidates = (
        Candidate(order, problem.memory, avoid_late_copies=avoid_late_copies)
        for _, order in orders(problem) for avoid_late_copies in (True, False)
    )  # fmt: skip
    return min((found.seconds for candidate in candidates for found in evaluator.try_both(candidate)), default=inf)
