"""Planning swaps in one call: the baselines, a search, the validator, and the fastest plan of all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from math import inf

from planner.cancel import Cancelled
from planner.graph import Graph
from planner.jit import COMPILING, doing
from planner.machine import Machine
from planner.plan import SwapPlan, gap_percent, percent_of_ideal, recompute_seconds
from planner.progress import ShowProgress, reporting
from planner.search import TimeLimit, check_limits
from planner.search_clock import search_seconds
from planner.swap.methods.method import Item, Result
from planner.swap.problem.problem import Seconds
from planner.swap.search.driver import DEFAULT, SearchState
from planner.swap.search.inputs import make_problem
from planner.swap.search.recompute_limit import check_recompute_limit, recompute_seconds_allowed

_LOOK_SECONDS = 0.2


@dataclass(frozen=True, eq=False)
class PlanWithBaselines:
    """A plan and what it was compared with.

    Args:
        plan: the fastest plan found.
        ideal_seconds: step time with infinite memory.
        bound_seconds: lower bound on the step time of any plan, in any order.
        baselines: step time in seconds by baseline; None if it has no plan within the budgets.
        evaluations: how many plans were timed.
        search_seconds: duration of the whole call.
    """

    plan: SwapPlan
    ideal_seconds: float
    bound_seconds: float
    baselines: Mapping[str, float | None]
    evaluations: int
    search_seconds: float

    @property
    def percent_of_ideal(self) -> float:
        """Speed of the plan relative to infinite memory, in percent."""
        return percent_of_ideal(self.ideal_seconds, self.plan.predicted.seconds)

    @property
    def recompute_seconds(self) -> float:
        """Seconds of the plan's step in which ops run again."""
        return recompute_seconds(self.plan)

    @property
    def gap_to_bound_percent(self) -> float:
        """How much slower the plan is than the bound, in percent."""
        return gap_percent(self.bound_seconds, self.plan.predicted.seconds)


def plan_swaps(
    graph: Graph,
    machine: Machine,
    budget: str | int,
    *,
    host_budget: str | int | None = None,
    seconds: Seconds | None = None,
    method: str | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    recompute_limit: str | float | None = None,
    progress: ShowProgress = True,
) -> SwapPlan:
    """Decide the order in which ops run and where every storage is at every moment, within a budget.

    Args:
        graph: a step; its workspaces are planned for.
        machine: its host link carries the copies, its device's alignment holds for every offset.
        budget: device bytes, or text such as `"8GiB"` or `"50%"` of what its arena takes when nothing is swapped.
        host_budget: bytes of pinned host memory, likewise; None for no limit.
        seconds: `[ops]`, how long each op runs; without it, the machine's roofline.
        method: as in `search_swaps`. The baselines always run.
        seed: for random choices.
        time_limit: seconds after which no better plan is searched for; None to search as long as that pays.
        recompute_limit: as in `search_swaps`.
        progress: True shows progress, False shows nothing, and a function is called with the share done, which never
            falls, and what is being done.

    Raises:
        StowageError: the method is unknown, the seed or time limit is invalid, or no plan fits; the message names the
            least budget that would be enough.
    """
    return plan_with_baselines(
        graph, machine, budget, host_budget=host_budget, seconds=seconds, method=method, seed=seed,
        time_limit=time_limit, recompute_limit=recompute_limit, progress=progress,
    ).plan  # fmt: skip


def plan_with_baselines(
    graph: Graph,
    machine: Machine,
    budget: str | int,
    *,
    host_budget: str | int | None = None,
    seconds: Seconds | None = None,
    method: str | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    recompute_limit: str | float | None = None,
    progress: ShowProgress = True,
) -> PlanWithBaselines:
    """Like `plan_swaps`, and also return what the plan was compared with.

    Args:
        graph, machine, budget, host_budget, seconds, method, seed, time_limit, recompute_limit, progress: as in
            `plan_swaps`.

    Raises:
        StowageError: as in `plan_swaps`.
    """
    check_limits(time_limit)
    check_recompute_limit(recompute_limit, method or DEFAULT)
    begin = search_seconds()

    def each(work: Callable[[Item], Result], items: Iterable[Item], /) -> list[Result]:
        futures = [pool.submit(work, item) for item in items]
        while wait(futures, _LOOK_SECONDS).not_done:
            if doing("") == COMPILING:
                report(report.share, COMPILING)
        return [future.result() for future in futures]

    with reporting(progress) as report, ThreadPoolExecutor(max(1, os.cpu_count() or 1)) as pool:
        report(0.0, "laying out the graph")
        problem, host = make_problem(graph, machine, budget, host_budget, seconds)
        deadline = inf if time_limit is None else begin + time_limit
        most = recompute_seconds_allowed(problem, recompute_limit)
        search_state = SearchState(problem, host, method or DEFAULT, seed, each, most)
        limit = TimeLimit(problem.stop, search_seconds)
        with limit.watched(deadline):
            while not search_state.done and (search_state.best is None or search_seconds() < deadline):
                report(max(report.share, search_state.share_done(time_limit)), search_state.doing)
                try:
                    with limit.step(may_cut=search_state.best is not None):
                        search_state.step()
                except Cancelled:
                    if search_seconds() < deadline:  # not by the limit but by who is told of the progress
                        raise
                search_state.seconds = search_seconds() - begin
        plan = search_state.plan()
        report(1.0, "done")
    return PlanWithBaselines(
        plan,
        problem.ideal_seconds,
        search_state.bound,
        search_state.baselines,
        search_state.evaluations,
        search_seconds() - begin,
    )
