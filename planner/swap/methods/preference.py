"""Which of two plans is better: the faster one, and of two that are as fast, the one that copies less.

Copies that take no time by the prediction still take host memory and the link, which others may want.
"""

from __future__ import annotations

from typing import NamedTuple

from planner.graph import Graph
from planner.plan import SwapPlan, bytes_copied
from planner.swap.draft.absences import NEVER
from planner.swap.draft.draft import UnplacedPlan
from planner.swap.problem.problem import Problem


class Rank(NamedTuple):
    """The rank of a plan; the lower, the better.

    Args:
        seconds: of its step, without the digits that depend on the order in which times are added up.
        bytes: copied in a step.
    """

    seconds: float
    bytes: int


def rank_of(plan: SwapPlan, graph: Graph) -> Rank:
    """The rank of a plan of a graph."""
    return _ranked(plan.predicted.seconds, sum(bytes_copied(graph, plan)))


def draft_rank(problem: Problem, draft: UnplacedPlan, seconds: float) -> Rank:
    """The rank of an unplaced plan whose step takes so many seconds."""
    absences, sizes = draft.absences, problem.sizes[draft.absences.storage]
    return _ranked(seconds, int(sizes[absences.copy].sum() + sizes[absences.reload != NEVER].sum()))


def _ranked(seconds: float, copied_bytes: int) -> Rank:
    return Rank(float(f"{seconds:.10g}"), copied_bytes)
