"""Planning swaps in one call: the baselines, a search, the validator, and the fastest plan of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.graph import Graph
from planner.machine import Machine
from planner.plan import SwapPlan, gap_percent, percent_of_ideal, recompute_seconds
from planner.progress import ShowProgress
from planner.swap.problem.problem import Seconds
from planner.swap.search.handle import search_swaps


@dataclass(frozen=True, eq=False)
class PlanWithBaselines:
    """A plan and what it was compared with.

    Args:
        plan: the fastest plan found.
        ideal_seconds: step time with infinite memory.
        bound_seconds: lower bound on the step time of any plan, in any order.
        baselines: step time in seconds by baseline; None if it has no plan within the budgets.
        evaluations: how many plans were timed.
        search_seconds: time spent searching.
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
    search = search_swaps(
        graph, machine, budget, host_budget=host_budget, seconds=seconds, method=method, seed=seed,
        time_limit=time_limit, recompute_limit=recompute_limit,
    )  # fmt: skip
    plan = search.wait(progress=progress)
    now = search.progress
    return PlanWithBaselines(plan, now.ideal_seconds, now.bound_seconds, search.baselines, now.evaluations, now.seconds)
