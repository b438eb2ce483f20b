"""What a plan must beat: moving nothing where it fits, and swapping on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from planner.memory import SwapPlan, lifetimes, pack_step
from planner.swap.assemble import assemble
from planner.swap.draft import Draft, stays_of
from planner.swap.finish import finish_placed
from planner.swap.gaps import blank_gaps
from planner.swap.orders import captured
from planner.swap.problem import Problem
from planner.swap.settle import settler
from planner.swap.steady import clock_of, walker
from planner.swap.timing import time_draft
from planner.swap.uses import uses_of


def resident_plan(problem: Problem) -> SwapPlan | None:
    """Nothing ever leaves, in captured order; None where that does not fit."""
    order, graph = captured(problem), problem.graph
    packing = pack_step(graph, alignment=problem.alignment, capacity=problem.budget)
    if packing.max_live <= problem.budget < packing.height:
        # looking for any packing that fits takes other turns than looking for the lowest, which is what 100 % means
        packing = pack_step(graph, alignment=problem.alignment)
    if packing.height > problem.budget:
        return None
    life = lifetimes(graph)
    inherits = np.full(problem.ops, -1, np.int32)
    heirs = np.flatnonzero(life.donor >= 0)
    inherits[life.birth[heirs]] = life.donor[heirs]
    empty = blank_gaps(0)
    draft = Draft(order, uses_of(order, problem.flow), problem.flow.held.copy(), empty, inherits)
    stays = stays_of(problem.flow, draft.uses, draft.resident, empty, inherits)
    none = np.empty(0, np.int32)
    return assemble(problem, draft, stays, packing.offsets[stays.storage], none, none, "resident")


def on_demand_plan(problem: Problem) -> SwapPlan | None:
    """Swap what an op waits for when it waits for it, least recently used first, in captured order.

    Exists whenever the storages of each op alone fit.
    """
    one = walker(problem, captured(problem))
    with_ground, clock = settler(one), clock_of(problem, one.order)
    best: SwapPlan | None = None
    for anchored in (np.zeros(problem.storages, np.bool_), None):
        placed = with_ground.draft(clock, on_demand=True, anchored=anchored)
        if placed is not None:
            plan = finish_placed(problem, placed, time_draft(problem, placed.draft), "on-demand")
            if best is None or plan.predicted.seconds < best.predicted.seconds:
                best = plan
    return best


#: What every plan is compared with, by the name of its method.
BASELINES: Mapping[str, Callable[[Problem], SwapPlan | None]] = MappingProxyType(
    {"resident": resident_plan, "on-demand": on_demand_plan}
)
