"""Planning swaps: every planner and baseline runs, what they return is validated, and the fastest plan wins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter

import numpy as np

from planner.errors import StowageError
from planner.graph import Graph
from planner.machine.types import Machine
from planner.memory import SwapPlan, format_bytes, parse_budget, step_peak, validate
from planner.swap.baselines import BASELINES
from planner.swap.bounds import bound_of
from planner.swap.calendar import CalendarSearch, Progress
from planner.swap.feasible import least_budget, refuse
from planner.swap.problem import Seconds, state

METHODS = ("calendar", "on-demand")
#: How strongly plans that spare host memory prefer or avoid to evict what needs a place there for the whole step.
_HOST_BIAS = (1 / 64, 64.0)


@dataclass(frozen=True, eq=False)
class SwapComparison:
    """A plan beside what it was measured against.

    Args:
        plan: the fastest plan found.
        ideal_seconds: the step with infinite memory.
        bound_seconds: no plan goes below this, whatever its order.
        baselines: seconds of the step by baseline; None where it has no plan within the budgets.
        evaluations: how many drafts of plans were timed.
        search_seconds: how long all this took.
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
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> SwapPlan:
    """Decide in which order ops run and where every storage lies at every moment, within a budget.

    Args:
        graph: a step; its workspaces are planned for.
        machine: its host link carries the copies, its device's alignment holds for every offset.
        budget: device bytes, or text such as `"8GiB"` or `"50%"` of what the step takes when nothing is swapped.
        host_budget: bytes of pinned host memory, likewise; None for no limit.
        seconds: `[ops]`, how long each op runs; without it, the machine's roofline.
        method: `"calendar"` or None for the fastest plan of all, `"on-demand"` for baselines only.
        time_limit: seconds after which no better plan is looked for; None for no limit.
        progress: called with the share done and what is being done.

    Raises:
        StowageError: the method is unknown, or no plan fits; the sentence names the least budget that would do.
    """
    return compare_plans(
        graph, machine, budget, host_budget=host_budget, seconds=seconds, method=method, time_limit=time_limit,
        progress=progress,
    ).plan  # fmt: skip


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
) -> SwapComparison:
    """`plan_swaps` with what the plan was compared to.

    Args:
        graph, machine, budget, host_budget, seconds, method, time_limit, progress: as in `plan_swaps`.

    Raises:
        StowageError: as in `plan_swaps`.
    """
    begin = perf_counter()
    if method is not None and method not in METHODS:
        raise StowageError(f'"{method}" is not a method of swapping; choose one of {", ".join(METHODS)}')
    if seconds is None:
        from planner.machine import op_seconds

        seconds = op_seconds(graph, machine)
    peak = step_peak(graph, machine.device.alignment)
    problem = state(graph, machine, parse_budget(budget, peak), seconds)
    limit = None if host_budget is None else parse_budget(host_budget, peak)
    least = least_budget(problem, peak)
    if problem.budget < least:
        raise refuse(problem, least)
    report = progress or _silent
    report(0.0, "looking at the baselines")
    bound = bound_of(problem)
    shelf = _Shelf(limit)
    baselines: dict[str, float | None] = {}
    for name, make in BASELINES.items():
        baselines[name] = shelf.add(make(problem))
    search = CalendarSearch(
        problem, bound, report, inf if time_limit is None else begin + time_limit, np.ones(problem.storages)
    )
    if method != "on-demand" and baselines["resident"] is None:
        for plan in search.plans():
            shelf.add(plan)
        if shelf.best is None:
            for plan in _sparing(search):
                shelf.add(plan)
    if shelf.best is None:
        raise StowageError(
            f"a host budget of {format_bytes(limit or 0)} is too small beside {format_bytes(problem.budget)} on the "
            f"device; allow at least {shelf.least_host} bytes ({format_bytes(shelf.least_host)}) of host memory, "
            f"or more on the device"
        )
    best = replace(shelf.best, host_budget_bytes=limit)
    problems = validate(best, graph)
    if problems:
        raise AssertionError(f"the {best.method} plan for {graph.name} is wrong: {problems[0]}")
    report(1.0, "done")
    return SwapComparison(best, problem.ideal_seconds, bound, baselines, search.evaluations, perf_counter() - begin)


@dataclass(eq=False)
class _Shelf:
    """The fastest plan so far whose host slab is within a limit, and the smallest host slab of all plans."""

    limit: int | None
    best: SwapPlan | None = None
    least_host: int = 2**62

    def add(self, plan: SwapPlan | None) -> float | None:
        """Keep a plan if it is the best; returns its time if it is within the limit."""
        if plan is None:
            return None
        self.least_host = min(self.least_host, plan.host_bytes)
        if self.limit is not None and plan.host_bytes > self.limit:
            return None
        if self.best is None or plan.predicted.seconds < self.best.predicted.seconds:
            self.best = plan
        return plan.predicted.seconds


def _sparing(search: CalendarSearch) -> Iterator[SwapPlan]:
    """Plans that take less host memory, where evicting what persists costs a place for the whole step."""
    for factor in _HOST_BIAS:
        search.bias = np.where(search.problem.flow.stateful, factor, 1.0)
        yield from search.plans()


def _silent(share: float, doing: str) -> None:
    """Report to nobody."""
