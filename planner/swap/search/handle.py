"""A search for swap plans that runs in threads and can be observed, cancelled, resumed and saved."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from planner.cancel import CancelToken
from planner.errors import StowageError
from planner.files import PATH, require_arguments
from planner.graph import Graph
from planner.jit import doing
from planner.machine import Machine
from planner.plan import PlanSummary, SwapPlan, percent_of_ideal
from planner.progress import ShowProgress, reporting
from planner.search import SECONDS, SearchHandle, SearchStatus, check_limits
from planner.swap.problem.problem import Seconds
from planner.swap.search.checkpoint import read_search, save_search
from planner.swap.search.driver import DEFAULT, Point, SearchState, check_choice
from planner.swap.search.inputs import get_op_seconds, is_instant, make_problem
from planner.swap.search.recompute_limit import check_recompute_limit, recompute_seconds_allowed
from planner.swap.search.search_pool import SwapSearchThread


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """The progress of a search.

    Args:
        state: `"running"`; `"cancelled"`; `"paused"` when its time or evaluations are used up; `"done"` when the bound
            is met or nothing is left to try; `"failed"`.
        doing: what is being tried, in words.
        share: how much of that is done, from 0 to 1.
        evaluations: plans timed.
        seconds: time spent searching.
        step_seconds: step time of the best plan, None before there is any.
        bound_seconds: lower bound on the step time of any plan that the method may find.
        recomputing_bound_seconds: lower bound on that of any plan, those included in which ops run again.
        ideal_seconds: step time with infinite memory.
    """

    state: SearchStatus
    doing: str
    share: float
    evaluations: int
    seconds: float
    step_seconds: float | None
    bound_seconds: float
    recomputing_bound_seconds: float
    ideal_seconds: float


class SwapSearch(SearchHandle[SearchState, SwapPlan]):
    """A running search. Made by `search_swaps` or `load_search`; dropping the last reference to it stops it.

    The same seed and number of evaluations give the same plan, whatever the number of threads.
    """

    _runner: SwapSearchThread

    def __repr__(self) -> str:
        now = self.progress
        best = "no plan yet" if now.step_seconds is None else f"{now.step_seconds:.4g} s a step"
        return f"<SwapSearch {now.state}: {best} after {now.seconds:.1f} s and {now.evaluations:,} plans>"

    @property
    def best(self) -> SwapPlan | None:
        """The fastest plan so far, always a valid one; None before there is any."""
        search_state = self._runner.search_state
        return None if search_state is None else search_state.best

    @property
    def summary(self) -> PlanSummary | None:
        """The key figures of the fastest plan so far, with the validator's answer; None before there is a plan."""
        search_state = self._runner.search_state
        if search_state is None or (best := search_state.best) is None:
            return None
        problem = search_state.problem
        return PlanSummary(problem.graph, best, problem.ideal_seconds, min(search_state.bound, best.predicted.seconds))

    @property
    def history(self) -> tuple[Point, ...]:
        """Every new best plan: when, after how many evaluations, how fast and by which method."""
        search_state = self._runner.search_state
        return () if search_state is None else tuple(search_state.history)

    @property
    def baselines(self) -> dict[str, float | None]:
        """Step time in seconds by baseline, None if it has no plan; only the baselines evaluated so far."""
        search_state = self._runner.search_state
        return {} if search_state is None else dict(search_state.baselines)

    @property
    def progress(self) -> SearchProgress:
        """The progress so far; cheap to read."""
        runner, search_state = self._runner, self._runner.search_state
        if search_state is None:
            ideal = runner.ideal
            words = doing("laying out the graph")
            return SearchProgress(runner.state, words, 0.0, 0, runner.searched(), None, ideal, ideal, ideal)
        best = search_state.best
        return SearchProgress(
            runner.state, doing(search_state.doing), search_state.share, search_state.evaluations, runner.searched(),
            None if best is None else best.predicted.seconds, search_state.bound, search_state.recomputing_bound,
            search_state.problem.ideal_seconds,
        )  # fmt: skip

    def _plan(self, search_state: SearchState) -> SwapPlan:
        return search_state.plan()

    def _doing(self) -> tuple[float, str]:
        now, search_state = self.progress, self._runner.search_state
        reached = ""
        if now.step_seconds:
            reached = f"; so far {percent_of_ideal(now.ideal_seconds, now.step_seconds):.1f}% of ideal"
        return 0.0 if search_state is None else search_state.share_done(None), f"{now.doing}{reached}"

    def save(self, path: str | Path) -> None:
        """Save the state of the search for `load_search`; the search may be running.

        A long search step in progress is restarted afterwards.

        Raises:
            StowageError: `path` is of another type; the file cannot be written and an existing one is left
                unchanged; the graph is not laid out yet; or the process was forked.
        """
        require_arguments("save", path=(path, PATH))
        with self._runner.at_home().between_turns() as search_state:
            save_search(search_state, path)


def search_swaps(
    graph: Graph,
    machine: Machine,
    budget: str | int,
    *,
    host_budget: str | int | None = None,
    seconds: Seconds | None = None,
    method: str | None = None,
    seed: int = 0,
    time_limit: float | None = SECONDS,
    evaluations: int | None = None,
    threads: int | None = None,
    recompute_limit: str | float | None = None,
) -> SwapSearch:
    """Start a search for the fastest plan within a budget; returns at once.

    Slow checks run in the search itself: for a huge graph, or a budget that is a share of a step peak not known yet,
    it is `wait` that reports that no plan fits.

    Args:
        graph: a step; its workspaces are planned for.
        machine: its host link carries the copies, its device's alignment holds for every offset.
        budget: device bytes, or text such as `"8GiB"` or `"50%"` of what its arena takes when nothing is swapped.
        host_budget: bytes of pinned host memory, likewise; None for no limit.
        seconds: `[ops]`, how long each op runs; without it, the machine's roofline.
        method: one of `METHODS`. `"swap"` runs each op once, `"recompute"` runs ops again and copies nothing,
            `"joint"` does both; None for `"auto"`, which tries all three and gives most time to what comes furthest.
        seed: for random choices.
        time_limit: seconds after which the search pauses, without those in which kernels are compiled; None for no
            limit.
        evaluations: number of timed plans after which it pauses; None for no limit.
        threads: number of search threads; all cores by default.
        recompute_limit: the most that may run again, in seconds, or text such as `"10%"` for a share of the step's time
            with infinite memory; None for no limit.

    Raises:
        BudgetTooSmallError: no plan fits; the message names the least budget that would be enough.
        StowageError: the method is unknown, or the seed, a limit or the machine is invalid.
    """
    check_choice(method or DEFAULT, seed)
    check_limits(time_limit, evaluations)
    check_recompute_limit(recompute_limit, method or DEFAULT)
    times, stop = get_op_seconds(graph, machine, budget, host_budget, seconds), CancelToken()

    def make() -> SearchState:
        problem, host = make_problem(graph, machine, budget, host_budget, times, stop)
        most = recompute_seconds_allowed(problem, recompute_limit)
        return SearchState(problem, host, method or DEFAULT, seed, recompute_limit=most)

    runner = SwapSearchThread(make, float(times.sum()), stop, _threads(threads))
    if is_instant(graph, machine, budget, host_budget):
        runner.lay_out()
    return SwapSearch(runner, time_limit, evaluations)


def load_search(
    path: str | Path,
    graph: Graph,
    machine: Machine,
    *,
    seconds: Seconds | None = None,
    time_limit: float | None = SECONDS,
    evaluations: int | None = None,
    threads: int | None = None,
    progress: ShowProgress = True,
) -> SwapSearch:
    """Resume a search that was saved, as if it had never stopped.

    Args:
        path: a file that `SwapSearch.save` wrote.
        graph, machine, seconds: as when the search was started.
        time_limit, evaluations, threads: as in `search_swaps`.
        progress: True shows progress until the search goes on, False shows nothing; a function is called with the share
            done, 0 to 1, and a status text.

    Raises:
        StowageError: the file is damaged, or from a search for another graph, machine or other op times.
    """
    with reporting(progress) as report:
        search_state = read_search(path, graph, machine, seconds, report)
    runner = SwapSearchThread(
        lambda: search_state, search_state.problem.ideal_seconds, search_state.problem.stop, _threads(threads)
    )
    runner.lay_out()
    return SwapSearch(runner, time_limit, evaluations)


def _threads(threads: int | None) -> int:
    if threads is not None and threads < 0:
        raise StowageError(f"threads must be 1 or more, or None for all cores, got {threads}")
    return threads or max(1, os.cpu_count() or 1)
