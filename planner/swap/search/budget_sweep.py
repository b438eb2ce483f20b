"""Step time against memory: plans for several budgets."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from planner.cancel import Cancelled, CancelToken
from planner.graph import Graph
from planner.machine import Machine
from planner.plan import SwapPlan, bytes_copied, percent_of_ideal
from planner.progress import Progress, ShowProgress, reporting
from planner.swap.bounds.any_order import bound_of, recomputing_bound_of
from planner.swap.problem.problem import Problem, Seconds
from planner.swap.schedule.budget_feasibility import BudgetTooSmallError, least_budget
from planner.swap.search.driver import RECOMPUTING, check_choice
from planner.swap.search.handle import search_swaps
from planner.swap.search.inputs import make_problem, peak_of
from planner.units import format_bytes

_POINTS = 8
SECONDS_EACH = 10.0
_LOOK_AGAIN = 0.02
_AS_FAST = 1 + 1e-9  # sums of op times in another order round differently


@dataclass(frozen=True, eq=False)
class BudgetPoint:
    """The best plan found for one budget.

    Args:
        budget_bytes: of device memory.
        plan: the plan; it may have been found for a smaller budget, which it fits as well.
        ideal_seconds: step time with infinite memory.
        bound_seconds: lower bound on the step time of any plan within this budget, in any order.
        bytes_in, bytes_out: bytes copied to the device and to the host in each step.
    """

    budget_bytes: int
    plan: SwapPlan
    ideal_seconds: float
    bound_seconds: float
    bytes_in: int
    bytes_out: int

    @property
    def step_seconds(self) -> float:
        """The time of a step."""
        return self.plan.predicted.seconds

    @property
    def percent_of_ideal(self) -> float:
        """Speed of the plan relative to infinite memory, in percent."""
        return percent_of_ideal(self.ideal_seconds, self.step_seconds)

    @property
    def bytes_moved(self) -> int:
        """Bytes copied in both directions together."""
        return self.bytes_in + self.bytes_out


def sweep(
    graph: Graph,
    machine: Machine,
    budgets: Iterable[str | int] | str | int | None = None,
    *,
    seconds: Seconds | None = None,
    time_limit_each: float = SECONDS_EACH,
    seed: int = 0,
    method: str = "swap",
    progress: ShowProgress = True,
    stop: CancelToken | None = None,
) -> tuple[BudgetPoint, ...]:
    """Plan swaps for several budgets; more memory never gives a slower step, as a plan fits every larger budget too.

    Args:
        graph, machine: what is planned, and where.
        budgets: device memory, each as in `plan_swaps`, or one alone. By default, eight from the least that there
            is a plan for to what the step takes when nothing is swapped, each the same factor above the one before.
        seconds: `[ops]`, how long each op runs; without it, the machine's roofline.
        time_limit_each: seconds of search for each budget.
        seed: for random choices.
        method: as in `search_swaps`; by default each op runs once. Of `"recompute"`, budgets within which nothing fits
            without copies have no point.
        progress: True shows progress, False shows nothing; a function is called with the share done, 0 to 1, and what
            is being done.
        stop: checked several times a second; once it is cancelled, the points so far are returned.

    Returns:
        Points by ascending budget, each budget once.

    Raises:
        StowageError: a budget is not an amount, or below the least that there is a plan for.
    """
    check_choice(method, seed)
    stop = stop or CancelToken()
    points: list[BudgetPoint] = []
    with reporting(progress) as report:
        with suppress(Cancelled):  # the points so far are returned
            problems = _problems(graph, machine, budgets, seconds, stop, report)
            for done, problem in enumerate(problems):
                if stop.requested:
                    break
                words = f"planning for {format_bytes(problem.budget)}"
                each = report.part(done / len(problems), (done + 1) / len(problems), words)
                best = best_at(problem, points[-1].plan if points else None, time_limit_each, seed, stop, each, method)
                if best is not None:
                    points.append(best)
        report(1.0, "done")
    return _with_bounds(points)


def _problems(
    graph: Graph,
    machine: Machine,
    budgets: Iterable[str | int] | str | int | None,
    seconds: Seconds | None,
    stop: CancelToken,
    report: Progress,
) -> list[Problem]:
    """One problem for each budget, ascending."""
    if budgets is None:
        report(0.0, "looking what the step takes when nothing is swapped")
        peak = peak_of(graph, machine.device.alignment, stop)
        report(0.0, "looking for the least budget that there is a plan for")
        whole, _ = make_problem(graph, machine, max(peak, 1), None, seconds, stop)
        least, seconds = least_budget(whole, max(peak, 1)), whole.seconds
        budgets = sorted({round(budget) for budget in np.geomspace(least, max(peak, least), _POINTS).tolist()})
        budgets = [min(max(budget, least), max(peak, least)) for budget in budgets]
    found = {}
    for budget in budgets if isinstance(budgets, Iterable) and not isinstance(budgets, str) else [budgets]:
        report(0.0, f"laying out the graph for {budget if isinstance(budget, str) else format_bytes(budget)}")
        problem, _ = make_problem(graph, machine, budget, None, seconds, stop)
        found[problem.budget], seconds = problem, problem.seconds
    return [found[budget] for budget in sorted(found)]


def best_at(
    problem: Problem,
    known: SwapPlan | None,
    time_limit: float,
    seed: int,
    stop: CancelToken,
    report: Progress,
    method: str = "swap",
) -> BudgetPoint | None:
    """The faster of a plan that is known to fit and what a search finds; None if cancelled before there is any.

    Of two equally fast plans, the one that moves less. If the known plan moves nothing and runs each op once, no search
    is run. With the method `"recompute"`, there may be no plan.

    Args:
        problem: what is planned.
        known: a plan whose peak is within the budget, or None.
        time_limit: seconds.
        seed: for random choices.
        stop: checked several times a second.
        report: called with the share of the time limit that has passed, from 0 to 1.
        method: as in `search_swaps`.

    Raises:
        StowageError: there is no plan.
    """
    bound, graph = (recomputing_bound_of if method in RECOMPUTING else bound_of)(problem), problem.graph
    if known is not None:
        known = replace(known, budget_bytes=problem.budget)
    if known is None or any(bytes_copied(graph, known)) or len(known.order) > len(graph.ops):
        search = search_swaps(
            problem.graph, problem.machine, problem.budget, seconds=problem.seconds, method=method, seed=seed,
            time_limit=time_limit,
        )  # fmt: skip
        try:
            while (now := search.progress).state == "running":
                if stop.requested:
                    search.cancel()
                report(now.seconds / time_limit if time_limit else 1.0)
                time.sleep(_LOOK_AGAIN)
        except BaseException:  # an interrupt, or `report` raised
            search.cancel()
            raise
        try:
            found = search.best if stop.requested else search.wait(progress=False)  # `wait` raises if there is none
        except BudgetTooSmallError:
            if method != "recompute":
                raise
            found = None
        if known is None or (found is not None and _better(found, known, graph)):
            known = found
    if known is None:
        return None
    return BudgetPoint(
        problem.budget, known, problem.ideal_seconds, min(bound, known.predicted.seconds), *bytes_copied(graph, known)
    )


def _better(found: SwapPlan, known: SwapPlan, graph: Graph) -> bool:
    """Whether a plan is faster than the known one, or as fast up to rounding and moves less."""
    if found.predicted.seconds > known.predicted.seconds * _AS_FAST:
        return False
    return found.predicted.seconds * _AS_FAST < known.predicted.seconds or (
        sum(bytes_copied(graph, found)) < sum(bytes_copied(graph, known))
    )


def _with_bounds(points: list[BudgetPoint]) -> tuple[BudgetPoint, ...]:
    """The same points, with bounds raised: a lower bound for more memory also holds for less."""
    bounds: list[float] = []
    bound = 0.0
    for point in reversed(points):
        bound = max(bound, point.bound_seconds)
        bounds.append(bound)
    raised: list[BudgetPoint] = []
    bound = inf
    for point, own in zip(points, reversed(bounds), strict=True):
        bound = min(bound, own, point.step_seconds)  # bounds are rounded too, and may be a rounding above a step
        raised.append(replace(point, bound_seconds=bound))
    return tuple(raised)
