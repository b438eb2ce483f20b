"""Take plans from a file into the list, and among the plans that are known for their machines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.errors import StowageError
from planner.machine import Machine
from planner.plan import SwapPlan, predicted_op_seconds
from widgets.info import assess_feasibility
from widgets.session.state import machines
from widgets.session.state.plan_cache import PlanCache
from widgets.session.state.saved_plan import SavedPlan
from widgets.session.state.session_state import SessionState
from widgets.session.tasks import planning, sweeping
from widgets.session.tasks.capturing import settle


def add(session_state: SessionState, saved: list[SavedPlan]) -> int:
    """List plans, but those that are there already; returns how many were new.

    Each is known from then on: where it is the fastest that fits a budget, it is drawn for that budget.

    Raises:
        StowageError: a plan is for a machine that is not known, a name or a note is too long, or the session is closed.
    """
    made = dict[str, list[PlanCache]]()
    plans = [(one, _cache_of(session_state, one.plan, made)) for one in saved]
    with session_state.message_bus.lock:
        session_state.check_open()
        new = session_state.plan_list.add(plans)
        for name, caches in made.items():
            if name not in session_state.plan_caches:
                session_state.plan_caches[name] = caches[0]
        for one in new:
            one.plan_cache.add(one.plan)
            allow(one.plan_cache, one.plan)
        _update(session_state)
        session_state.message_bus.publish(session_state.plans_words())
    return len(new)


def allow(plan_cache: PlanCache, plan: SwapPlan) -> None:
    """Lower the least budget of a machine to what a plan takes: a plan from a file may show that less is enough."""
    taken = plan.peak_bytes + plan_cache.feasibility.graph.outside_bytes
    if taken < plan_cache.feasibility.least_bytes:
        plan_cache.feasibility = replace(plan_cache.feasibility, least_bytes=taken)


def _update(session_state: SessionState) -> None:
    """Send what the plans change for the machine that is shown, and plan again where none was possible."""
    plan_cache, before = session_state.plan_cache, session_state.feasibility
    if plan_cache is None or before is None:
        return
    if plan_cache.feasibility is before:
        sweeping.publish(session_state)
        return
    settle(session_state, plan_cache)
    budget = session_state.budget_bytes
    if before.verdict(budget) != plan_cache.feasibility.verdict(budget):
        planning.begin(session_state)


def _cache_of(session_state: SessionState, plan: SwapPlan, made: dict[str, list[PlanCache]]) -> PlanCache:
    """The plans known for the machine of a plan, with the op times and the scratch memory that it was made for.

    Args:
        session_state: the session state.
        plan: a plan from a file.
        made: by machine, what was made for plans of the file: first that of the machine when it is chosen, if it was
            not chosen before, then others; what is made for this one is added.
    """
    seconds, graph = predicted_op_seconds(plan), session_state.graph
    assert graph is not None
    with session_state.message_bus.lock:
        known = session_state.plan_caches.get(plan.machine)
        caches = [one.plan_cache for one in session_state.plan_list.plans if one.plan.machine == plan.machine]
    if known is None and plan.machine not in made:
        made[plan.machine] = [PlanCache(assess_feasibility(graph, _machine(plan.machine)))]
    mine = made.setdefault(plan.machine, [])
    for cache in [*([known] if known is not None else []), *mine, *caches]:
        workspaces = cache.feasibility.captured.workspaces
        if workspaces == plan.workspaces and np.allclose(cache.feasibility.seconds, seconds, 1e-6, 1e-12):
            return cache
    machine = (known or mine[0]).feasibility.machine
    cache = PlanCache(assess_feasibility(graph.with_workspaces(dict(plan.workspaces)), machine, seconds))
    mine.append(cache)
    return cache


def _machine(name: str) -> Machine:
    try:
        return machines.find(name)
    except StowageError as error:
        raise StowageError(
            f"a plan of this list is for the machine {name!r}, which is not known here: "
            "set the workbench's machine to it first"
        ) from error
