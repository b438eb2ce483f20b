"""Planning swaps: every planner and baseline runs, what they return is validated, and the fastest plan wins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.errors import StowageError
from planner.graph import Graph
from planner.machine.types import Machine
from planner.memory import SwapPlan, format_bytes, parse_budget, step_peak, validate
from planner.swap.baselines import on_demand_plan, resident_plan
from planner.swap.bounds import bound_of
from planner.swap.calendar import Progress, calendar_plans
from planner.swap.feasible import least_budget, refuse
from planner.swap.problem import Problem, Seconds, state

METHODS = ("calendar", "on-demand")


def plan_swaps(
    graph: Graph,
    machine: Machine,
    budget: str | int,
    *,
    host_budget: str | int | None = None,
    seconds: Seconds | None = None,
    method: str | None = None,
    progress: Progress | None = None,
) -> SwapPlan:
    """Decide in which order ops run and where every storage lies at every moment, within a budget.

    Args:
        graph: a step; its workspaces are planned for.
        machine: its host link carries the copies, its device's alignment holds for every offset.
        budget: device bytes, or text such as `"8GiB"` or `"50%"` of what the step takes when nothing is swapped.
        host_budget: bytes of pinned host memory, likewise; None for no limit.
        seconds: `[ops]`, how long each op runs; without it, the machine's roofline.
        method: `"calendar"`, `"on-demand"`, or None for the fastest plan of all.
        progress: called with the share done and what is being done.

    Raises:
        StowageError: the method is unknown, or no plan fits; the sentence names the least budget that would do.
    """
    if method is not None and method not in METHODS:
        raise StowageError(f'"{method}" is not a method of swapping; choose one of {", ".join(METHODS)}')
    if seconds is None:
        from planner.machine import op_seconds

        seconds = op_seconds(graph, machine)
    peak = step_peak(graph, machine.device.alignment)
    problem = state(graph, machine, parse_budget(budget, peak), seconds)
    host_limit = None if host_budget is None else parse_budget(host_budget, peak)
    least = least_budget(problem, peak)
    if problem.budget < least:
        raise refuse(problem, least)
    plans = list(_candidates(problem, method, progress or _silent))
    fitting = [plan for plan in plans if host_limit is None or plan.host_bytes <= host_limit]
    if not fitting:
        needed = min(plan.host_bytes for plan in plans)
        raise StowageError(
            f"a host budget of {format_bytes(host_limit or 0)} is too small beside {format_bytes(problem.budget)} on "
            f"the device; allow at least {needed} bytes ({format_bytes(needed)}) of host memory, or more on the device"
        )
    best = replace(min(fitting, key=lambda plan: plan.predicted.seconds), host_budget_bytes=host_limit)
    problems = validate(best, graph)
    if problems:
        raise AssertionError(f"the {best.method} plan for {graph.name} is wrong: {problems[0]}")
    return best


def _candidates(problem: Problem, method: str | None, progress: Progress) -> Iterator[SwapPlan]:
    progress(0.0, "looking whether all fits")
    resident = resident_plan(problem)
    if resident is not None:
        yield resident
        return
    on_demand = on_demand_plan(problem)
    if on_demand is not None:
        yield on_demand
    if method != "on-demand":
        yield from calendar_plans(problem, bound_of(problem), progress)


def _silent(share: float, doing: str) -> None:
    """Report to nobody."""
