"""Planning swaps in one call: the baselines, a search, the validator, and the fastest plan of all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from math import inf
from time import perf_counter

from planner.graph import Graph
from planner.kernels import COMPILING, announcing, doing
from planner.machine.types import Machine
from planner.plan import SwapPlan
from planner.progress import Progress, reporting
from planner.swap.methods.method import Item, Result
from planner.swap.problem.problem import Seconds
from planner.swap.search.driver import DEFAULT, Course
from planner.swap.search.handle import check_limits
from planner.swap.search.inputs import problem_of
from planner.swap.wording import percent_of_ideal

_LOOK_SECONDS = 0.2


@dataclass(frozen=True, eq=False)
class SwapComparison:
    """A plan beside what it was measured against.

    Args:
        plan: the fastest plan found.
        ideal_seconds: the step with infinite memory.
        bound_seconds: no plan goes below this, whatever its order.
        baselines: seconds of the step by baseline; None where it has no plan within the budgets.
        evaluations: how many plans were timed.
        search_seconds: how long all this took.
    """

    plan: SwapPlan
    ideal_seconds: float
    bound_seconds: float
    baselines: Mapping[str, float | None]
    evaluations: int
    search_seconds: float

    @property
    def percent_of_ideal(self) -> float:
        """How fast the plan is beside infinite memory."""
        return percent_of_ideal(self.ideal_seconds, self.plan.predicted.seconds)

    @property
    def gap_to_bound_percent(self) -> float:
        """How much slower the plan is than the bound."""
        return max(0.0, 100 * self.plan.predicted.seconds / self.bound_seconds - 100) if self.bound_seconds else 0.0


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
    progress: Progress = True,
) -> SwapPlan:
    """Decide in which order ops run and where every storage lies at every moment, within a budget.

    Args:
        graph: a step; its workspaces are planned for.
        machine: its host link carries the copies, its device's alignment holds for every offset.
        budget: device bytes, or text such as `"8GiB"` or `"50%"` of what the step takes when nothing is swapped.
        host_budget: bytes of pinned host memory, likewise; None for no limit.
        seconds: `[ops]`, how long each op runs; without it, the machine's roofline.
        method: one of `METHODS`; None for `"joint"`, the best there is. The baselines always run.
        seed: for random choices.
        time_limit: seconds after which no better plan is looked for; None to look as long as that pays.
        progress: True shows how far it is, False shows nothing, and a function is called with the share done, which
            never falls, and what is being done.

    Raises:
        StowageError: the method is unknown, the seed or time limit is none, or no plan fits; the sentence names the
            least budget that would do.
    """
    return compare_plans(
        graph, machine, budget, host_budget=host_budget, seconds=seconds, method=method, seed=seed,
        time_limit=time_limit, progress=progress,
    ).plan  # fmt: skip


def compare_plans(
    graph: Graph,
    machine: Machine,
    budget: str | int,
    *,
    host_budget: str | int | None = None,
    seconds: Seconds | None = None,
    method: str | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    progress: Progress = True,
) -> SwapComparison:
    """`plan_swaps` with what the plan was compared to.

    Args:
        graph, machine, budget, host_budget, seconds, method, seed, time_limit, progress: as in `plan_swaps`.

    Raises:
        StowageError: as in `plan_swaps`.
    """
    check_limits(time_limit)
    begin, share = perf_counter(), 0.0

    def compiling(words: str) -> None:
        report(share, words)

    def each(work: Callable[[Item], Result], items: Iterable[Item], /) -> list[Result]:
        futures = [pool.submit(work, item) for item in items]
        while wait(futures, _LOOK_SECONDS).not_done:
            if doing("") == COMPILING:
                compiling(COMPILING)
        return [future.result() for future in futures]

    with (
        reporting(progress) as report, announcing(compiling),
        ThreadPoolExecutor(max(1, os.cpu_count() or 1)) as pool,
    ):  # fmt: skip
        report(share, "laying out the graph")
        problem, host = problem_of(graph, machine, budget, host_budget, seconds)
        deadline = inf if time_limit is None else begin + time_limit
        course = Course(problem, host, method or DEFAULT, seed, each)
        while not course.done and (course.best is None or perf_counter() < deadline):
            share = max(share, course.share_done(time_limit))
            report(share, course.doing)
            course.step()
            course.seconds = perf_counter() - begin
        plan = course.plan()
        report(1.0, "done")
    return SwapComparison(
        plan, problem.ideal_seconds, course.bound, course.baselines, course.evaluations, perf_counter() - begin
    )
