"""Planning swaps: every planner and baseline runs, what they return is validated, and the fastest plan wins."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

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
#: What any plan is held against: moving nothing, and moving what is missing when it is missed.
_BASELINES = ("resident", "on-demand")


@dataclass(frozen=True, eq=False)
class Comparison:
    """The best plan found, and what it is to be measured by.

    Args:
        plan: validated.
        ideal_seconds: the step with infinite memory.
        bound_seconds: no plan within the budget is faster, whatever its order; proven.
        baselines: step seconds by trivial policy; None where the policy has no plan within the budget.
        evaluations: plans that were worked out to the last offset and timed.
        search_seconds: how long all of it took.
    """

    plan: SwapPlan
    ideal_seconds: float
    bound_seconds: float
    baselines: Mapping[str, float | None]
    evaluations: int
    search_seconds: float


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
    """The best plan of `compare_plans`, which says what the arguments are."""
    return compare_plans(
        graph, machine, budget, host_budget=host_budget, seconds=seconds, method=method, progress=progress
    ).plan


def compare_plans(
    graph: Graph,
    machine: Machine,
    budget: str | int,
    *,
    host_budget: str | int | None = None,
    seconds: Seconds | None = None,
    method: str | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Decide in which order ops run and where every storage lies at every moment, within a budget.

    Args:
        graph: a step; its workspaces are planned for.
        machine: its host link carries the copies, its device's alignment holds for every offset.
        budget: device bytes, or text such as `"8GiB"` or `"50%"` of what the step takes when nothing is swapped.
        host_budget: bytes of pinned host memory, likewise; None for no limit.
        seconds: `[ops]`, how long each op runs; without it, the machine's roofline.
        method: `"calendar"`, `"on-demand"`, or None for the fastest plan of all.
        time_limit: seconds after which no better plan is looked for once there is one; None for no limit.
        progress: called with the share done and what is being done.

    Raises:
        StowageError: the method is unknown, or no plan fits; the sentence names the least budget that would do.
    """
    started = time.perf_counter()
    if method is not None and method not in METHODS:
        raise StowageError(f'"{method}" is not a method of swapping; choose one of {", ".join(METHODS)}')
    if time_limit is not None and not time_limit >= 0:
        raise StowageError(f"a search cannot take {time_limit:g} seconds; give 0 or more seconds")
    if seconds is None:
        from planner.machine import op_seconds

        seconds = op_seconds(graph, machine)
    peak = step_peak(graph, machine.device.alignment)
    problem = state(graph, machine, parse_budget(budget, peak), seconds)
    host_limit = None if host_budget is None else parse_budget(host_budget, peak)
    least = least_budget(problem, peak)
    if problem.budget < least:
        raise refuse(problem, least)
    bound = bound_of(problem)
    plans: list[SwapPlan] = []
    fitting: list[SwapPlan] = []
    for plan in _candidates(problem, bound, method, progress or _silent):
        plans.append(plan)
        if host_limit is None or plan.host_bytes <= host_limit:
            fitting.append(plan)
        if fitting and time_limit is not None and time.perf_counter() - started >= time_limit:
            break
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
    return Comparison(
        best,
        problem.ideal_seconds,
        bound,
        {name: _fastest(fitting, name) for name in _BASELINES},
        len(plans),
        time.perf_counter() - started,
    )


def _fastest(plans: list[SwapPlan], method: str) -> float | None:
    return min((plan.predicted.seconds for plan in plans if plan.method == method), default=None)


def _candidates(problem: Problem, bound: float, method: str | None, progress: Progress) -> Iterator[SwapPlan]:
    progress(0.0, "looking whether all fits")
    resident = resident_plan(problem)
    if resident is not None:
        yield resident
        return
    on_demand = on_demand_plan(problem)
    if on_demand is not None:
        yield on_demand
    if method != "on-demand":
        yield from calendar_plans(problem, bound, progress)


def _silent(share: float, doing: str) -> None:
    """Report to nobody."""
