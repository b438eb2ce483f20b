"""What a plan must beat: moving nothing where it fits, and swapping on demand."""

from __future__ import annotations

import numpy as np

from planner.memory.plan import SwapPlan
from planner.swap.draft import Draft
from planner.swap.finish import finish_draft, finish_placed
from planner.swap.orders import captured
from planner.swap.problem import Problem
from planner.swap.settle import settler
from planner.swap.steady import clock_of, walker
from planner.swap.timing import time_draft
from planner.swap.uses import uses_of
from planner.swap.walk import Gaps


def resident_plan(problem: Problem) -> SwapPlan | None:
    """Nothing ever leaves, in captured order; None where that does not fit."""
    order = captured(problem)
    uses = uses_of(order, problem.flow)
    empty = Gaps(*(np.empty(0, np.int32) for _ in range(5)), np.empty(0, np.bool_))
    draft = Draft(order, uses, problem.flow.held.copy(), empty, uses.donor)
    if uses.live.max(initial=0) > problem.memory:
        return None
    return finish_draft(problem, draft, time_draft(problem, draft), "resident")


def on_demand_plan(problem: Problem) -> SwapPlan | None:
    """Swap what an op waits for when it waits for it, least recently used first, in captured order.

    Exists whenever the storages of each op alone fit.
    """
    one = walker(problem, captured(problem))
    with_ground, clock = settler(one), clock_of(problem, one.order)
    best: SwapPlan | None = None
    for carry in (True, False):
        placed = with_ground.draft(clock, on_demand=True, carry=carry)
        if placed is not None:
            plan = finish_placed(problem, placed, time_draft(problem, placed.draft), "on-demand")
            if best is None or plan.predicted.seconds < best.predicted.seconds:
                best = plan
    return best
