"""What a plan must beat: moving nothing where it fits, swapping on demand, and the rules that frameworks swap by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from planner.memory import lifetimes, pack_step
from planner.plan import SwapPlan
from planner.swap.baselines.offload import save_on_cpu_plan, tflms_plan
from planner.swap.baselines.on_demand import lru_prefetch_plan, on_demand_plan
from planner.swap.draft.absences import blank_gaps
from planner.swap.draft.draft import Draft, stays_of
from planner.swap.emit.assemble import assemble
from planner.swap.problem.problem import Problem
from planner.swap.problem.uses import uses_of
from planner.swap.schedule.list_scheduling import captured


def resident_plan(problem: Problem) -> SwapPlan | None:
    """Nothing ever leaves, in captured order; None where that does not fit."""
    order, graph = captured(problem), problem.graph
    life = lifetimes(graph)
    if life.peak_bytes > problem.budget:
        return None
    packing = pack_step(graph, alignment=problem.alignment, capacity=problem.budget, between=problem.stop.check)
    if packing.max_live <= problem.budget < packing.height:
        # looking for any packing that fits takes other turns than looking for the lowest, which is what 100 % means
        packing = pack_step(graph, alignment=problem.alignment, between=problem.stop.check)
    if packing.height > problem.budget:
        return None
    inherits = np.full(problem.ops, -1, np.int32)
    heirs = np.flatnonzero(life.donor >= 0)
    inherits[life.birth[heirs]] = life.donor[heirs]
    empty = blank_gaps(0)
    resident = problem.flow.held & (problem.ops > 0)  # a step without ops has no slot to be there in
    draft = Draft(order, uses_of(order, problem.flow), resident, empty, inherits)
    stays = stays_of(problem.flow, draft.uses, draft.resident, empty, inherits)
    none = np.empty(0, np.int32)
    return assemble(problem, draft, stays, packing.offsets[stays.storage], none, none, "resident")


#: What every plan is compared with, by the name of its method.
BASELINES: Mapping[str, Callable[[Problem], SwapPlan | None]] = MappingProxyType(
    {
        "resident": resident_plan,
        "on-demand": on_demand_plan,
        "lru-prefetch": lru_prefetch_plan,
        "tflms": tflms_plan,
        "save-on-cpu": save_on_cpu_plan,
    }
)
