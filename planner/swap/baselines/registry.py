"""The baselines: moving nothing if the step fits, swapping on demand, and the rules that frameworks swap by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from planner.memory import lifetimes, pack_step
from planner.plan import SwapPlan
from planner.swap.baselines.offload import save_on_cpu_plan, tflms_plan
from planner.swap.baselines.on_demand import lru_prefetch_plan, on_demand_plan
from planner.swap.draft.absences import blank_absences
from planner.swap.draft.draft import UnplacedPlan, unplaced_residencies
from planner.swap.emit.assemble import assemble
from planner.swap.problem.problem import Problem
from planner.swap.problem.uses import uses_of
from planner.swap.schedule.base_orders import captured


def resident_plan(problem: Problem) -> SwapPlan | None:
    """Keep everything on the device, in captured order; None if that does not fit."""
    order, graph = captured(problem), problem.graph
    storage_lifetimes = lifetimes(graph)
    if storage_lifetimes.peak_bytes > problem.arena_budget:
        return None
    packing = pack_step(graph, alignment=problem.alignment, capacity=problem.arena_budget, stop=problem.stop)
    if packing.max_live <= problem.arena_budget < packing.peak:
        # a search for any packing that fits takes another path than one for the lowest, which is what 100 % means
        packing = pack_step(graph, alignment=problem.alignment, stop=problem.stop)
    if packing.peak > problem.arena_budget:
        return None
    reuses_buffer_of = np.full(problem.ops, -1, np.int32)
    reusing = np.flatnonzero(storage_lifetimes.reused_buffer >= 0)
    reuses_buffer_of[storage_lifetimes.birth[reusing]] = storage_lifetimes.reused_buffer[reusing]
    empty = blank_absences(0)
    resident = problem.arrays.live_in & (problem.ops > 0)  # a step without ops has no slot to be resident in
    draft = UnplacedPlan(order, uses_of(order, problem.arrays), resident, empty, reuses_buffer_of)
    residencies = unplaced_residencies(problem.arrays, draft.uses, draft.resident, empty, reuses_buffer_of)
    no_copies = np.empty(0, np.int32)
    return assemble(problem, draft, residencies, packing.offsets[residencies.storage], no_copies, no_copies, "resident")


#: The baselines that every plan is compared with, by name of method.
BASELINES: Mapping[str, Callable[[Problem], SwapPlan | None]] = MappingProxyType(
    {
        "resident": resident_plan,
        "on-demand": on_demand_plan,
        "lru-prefetch": lru_prefetch_plan,
        "tflms": tflms_plan,
        "save-on-cpu": save_on_cpu_plan,
    }
)
