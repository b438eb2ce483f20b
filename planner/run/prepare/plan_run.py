"""The plan of a run: capture, planning with op times measured here, and validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from planner.cancel import CancelToken
from planner.capture import capture
from planner.errors import StowageError
from planner.global_state_lock import global_state_lock
from planner.graph import Graph, fingerprint, structure
from planner.machine import Link
from planner.plan import SwapPlan, validate
from planner.program import backend_of
from planner.progress import Listener, Progress
from planner.run.prepare.footprint import refuse_too_large
from planner.run.prepare.found_plan import found_plan
from planner.step import Step
from planner.units import format_bytes

#: Time limit of the search for a plan.
_PLANNING_SECONDS = 10.0


@dataclass(frozen=True, eq=False)
class RunRequest:
    """The arguments of a run.

    Args:
        step: the step to run.
        plan: made for the step's graph; None to plan here.
        budget: device bytes or text; None for the step's own peak.
        link: the link to imitate; None for none.
        steps, device, check, stress, remeasure, recheck: as in `run`; `recheck` is None for the default schedule and 0
            for never.
    """

    step: Step
    plan: SwapPlan | None
    budget: str | int | None
    link: Link | None
    steps: int
    device: str
    check: bool | Literal["first"]
    stress: bool
    remeasure: bool
    recheck: int | None


def plan_run(
    request: RunRequest,
    stop: CancelToken,
    listener: Listener,
    known: Sequence[tuple[Graph, SwapPlan]] = (),
    *,
    within: bool = False,
) -> tuple[Graph, SwapPlan]:
    """The graph of the requested step, and a valid plan for it.

    Args:
        request: the run request.
        stop: checked periodically.
        listener: called with the share done, from 0 to 1 and never falling, and a status text.
        known: earlier graphs of the step, with their plans.
        within: whether to plan again, within the budget of the given plan, if that plan is for another graph.

    Raises:
        StowageError: the step cannot be captured, there is no plan within the budget, or the given plan is not valid.
        Cancelled: the run was cancelled.
    """
    whole = Progress(listener, stop)
    capturing = whole.part(0.0, 1.0 if request.plan is not None else 0.2, "capturing the step")
    with global_state_lock(stop.check):
        graph = capture(request.step, device=request.device, progress=capturing)
    plan = _transferred(graph, known)
    if plan is None and within and request.plan is not None:
        request = replace(request, plan=None, budget=request.plan.budget_bytes)
    if plan is None:
        refuse_too_large(graph, request.plan, request.step, checked=False)  # planning would find out a minute later
        measuring, planning = whole.part(0.2, 0.6), whole.part(0.6, 1.0)
        plan = _planned(graph, request, stop, measuring, planning) if request.plan is None else request.plan
    stop.check()
    _refuse_invalid(plan, graph, request.step)
    return graph, plan


def _transferred(graph: Graph, known: Sequence[tuple[Graph, SwapPlan]]) -> SwapPlan | None:
    """A known plan, adapted to this graph if its own graph differs from this one in numbers alone; None without one."""
    wanted = structure(graph) if known else ""
    for other, plan in known:
        if other is graph:
            return plan
        if structure(other) == wanted:
            return replace(plan, graph=fingerprint(graph))
    return None


def _planned(graph: Graph, request: RunRequest, stop: CancelToken, measuring: Progress, planning: Progress) -> SwapPlan:
    """A plan for this device, with op times and scratch memory as measured here."""
    from planner.profile import prepare
    from planner.swap import search_swaps

    machine = "cpu" if graph.device == "cpu" else "auto"
    ready = prepare(graph, machine, progress=measuring, remeasure=request.remeasure, stop=stop)
    here = ready.machine if request.link is None else replace(ready.machine, host_link=request.link)
    planning(0.0, "planning")
    budget = "100%" if request.budget is None else request.budget
    search = search_swaps(ready.graph, here, budget, seconds=ready.seconds, time_limit=_PLANNING_SECONDS)
    return found_plan(search, request.steps or None, planning)


def _refuse_invalid(plan: SwapPlan, graph: Graph, step: Step) -> None:
    if plan.graph != fingerprint(graph):
        elsewhere = (one.graph.device for one in step.captures if fingerprint(one.graph) == plan.graph)
        if device := next((device for device in elsewhere if device != graph.device), ""):
            raise StowageError(
                f"this plan is for {graph.name} with the ops of {device}, and the run is on {graph.device}: plan for "
                f'planner.capture(step, device="{graph.device}")'
            )
        since = f" since {step.change}" if step.change else ""
        raise StowageError(
            f"this plan is not for {graph.name}: its graph is another one{since}; plan again for this step"
        )
    _refuse_without_room(plan, graph)
    problems = validate(plan, graph.with_workspaces(dict(plan.workspaces)))
    if problems:
        raise StowageError(f"this plan is not valid: {problems[0].rstrip('.')}; plan again")


def _refuse_without_room(plan: SwapPlan, graph: Graph) -> None:
    """Refuse a plan that has workspaces in its arena, where the device has scratch memory beside it, and no room there.

    Such a plan was made for a graph of another device's workspaces.
    """
    if not backend_of(graph.device).scratch_is_outside:
        return
    outside = max((graph.outside_bytes, *(size for _, size in plan.workspaces)))
    total = plan.peak_bytes + outside
    if total > plan.budget_bytes:
        raise StowageError(
            f"this plan has an arena of {format_bytes(plan.peak_bytes)}, and on {graph.device} its ops take up to "
            f"{format_bytes(outside)} of temporary memory beside it: {format_bytes(total - plan.budget_bytes)} more "
            f"than its budget of {format_bytes(plan.budget_bytes)}; plan for the graph that "
            f'planner.profile.prepare(step, "auto") returns, or allow at least {total} bytes'
        )
