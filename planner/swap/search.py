"""A search for swap plans that runs in threads while one looks on, stops it, goes on with it or keeps it for later."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Literal
from weakref import finalize

from planner.errors import StowageError
from planner.graph import Graph
from planner.machine.types import Machine
from planner.memory import SwapPlan
from planner.swap.course import DEFAULT, Course, Point
from planner.swap.method import Item, Result
from planner.swap.problem import Seconds
from planner.swap.request import problem_of
from planner.swap.search_store import read_course, write_course

State = Literal["running", "cancelled", "paused", "done", "failed"]
_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How far a search is.

    Args:
        state: `"running"`; `"cancelled"`; `"paused"` when its time or evaluations are used up; `"done"` when the bound
            is met or nothing is left to try; `"failed"`.
        doing: what is being tried, in words.
        share: how much of that is done, from 0 to 1.
        evaluations: plans timed.
        seconds: time spent searching.
        step_seconds: the best plan's, None before there is any.
        bound_seconds, ideal_seconds: no plan's step is faster; with infinite memory.
    """

    state: State
    doing: str
    share: float
    evaluations: int
    seconds: float
    step_seconds: float | None
    bound_seconds: float
    ideal_seconds: float


class SwapSearch:
    """A running search. Made by `search_swaps` or `load_search`; dropping the last reference to it stops it.

    The same seed and number of evaluations give the same plan, whatever the number of threads.
    """

    def __init__(self, course: Course, time_limit: float | None, evaluations: int | None, threads: int | None) -> None:
        if threads is not None and threads < 0:
            raise StowageError(f"{threads} threads are none; give 1 or more")
        self._runner = _Runner(course, threads or max(1, os.cpu_count() or 1))
        self._stop = finalize(self, self._runner.stop.set)
        self.resume(time_limit=time_limit, evaluations=evaluations)

    def __repr__(self) -> str:
        now = self.progress
        best = "no plan yet" if now.step_seconds is None else f"{now.step_seconds:.4g} s a step"
        return f"<SwapSearch {now.state}: {best} after {now.seconds:.1f} s and {now.evaluations:,} plans>"

    @property
    def best(self) -> SwapPlan | None:
        """The fastest plan so far, always a valid one; None before there is any."""
        return self._runner.course.best

    @property
    def history(self) -> tuple[Point, ...]:
        """Every new best plan: when, after how many evaluations, how fast and by which method."""
        return tuple(self._runner.course.history)

    @property
    def baselines(self) -> dict[str, float | None]:
        """Seconds of the step by baseline, None where it has no plan; those that were looked at so far."""
        return dict(self._runner.course.baselines)

    @property
    def progress(self) -> SearchProgress:
        """How far the search is; cheap to read."""
        runner, course = self._runner, self._runner.course
        best = course.best
        return SearchProgress(
            runner.state, course.doing, course.share, course.evaluations, runner.searched(),
            None if best is None else best.predicted.seconds, course.bound, course.problem.ideal_seconds,
        )  # fmt: skip

    def wait(self, seconds: float | None = None) -> SwapPlan:
        """Wait until the search ends or that many seconds are over; returns the best plan so far.

        Interrupting the wait cancels the search.

        Raises:
            StowageError: there is no plan yet, or none within the host budget; or the process was forked meanwhile.
        """
        runner = self._runner.at_home()
        try:
            ended = runner.ended.wait(None if seconds is None else min(seconds, threading.TIMEOUT_MAX))
        except KeyboardInterrupt:
            self.cancel()
            raise
        if runner.error is not None:
            raise runner.error
        if not ended and runner.course.best is None:
            raise StowageError(f"the search has no plan yet after {runner.searched():.1f} s; wait a little longer")
        return runner.course.plan()

    def cancel(self) -> None:
        """Stop soon, within a second; what was found stays. Cancelling again does nothing."""
        self._runner.stop.set()

    def resume(self, *, time_limit: float | None = _SECONDS, evaluations: int | None = None) -> None:
        """Go on from where the search stopped; does nothing while it runs or when nothing is left to try.

        Args:
            time_limit: stop again after this many seconds; None for no limit.
            evaluations: stop again after this many more evaluations; None for no limit.

        Raises:
            StowageError: a limit is no number or below 0; or the process was forked meanwhile.
        """
        for name, limit in (("time limit", time_limit), ("number of evaluations", evaluations)):
            if limit is not None and not limit >= 0:
                raise StowageError(f"a {name} of {limit} is none; give 0 or more")
        self._runner.at_home().start(time_limit, evaluations)

    def save(self, path: str | Path) -> None:
        """Write down where the search is, to go on with `load_search`; it may be running.

        Raises:
            StowageError: the file cannot be written and an earlier one stays as it was, or the process was forked.
        """
        runner = self._runner.at_home()
        with runner.turn:
            write_course(runner.course, path)


class _Runner:
    """What the search's thread holds on to; not the handle, so that dropping that can stop it."""

    def __init__(self, course: Course, threads: int) -> None:
        self.course, self.threads = course, threads
        self.stop, self.ended, self.turn = threading.Event(), threading.Event(), threading.Lock()
        self.beginning, self.process = threading.Lock(), os.getpid()
        self.state: State = "paused"
        self.error: BaseException | None = None
        self.began: float | None = None
        self.thread: threading.Thread | None = None
        course.cancelled = self.stop.is_set

    def searched(self) -> float:
        """Seconds spent searching."""
        began = self.began
        return self.course.seconds if began is None else perf_counter() - began

    def at_home(self) -> _Runner:
        """Itself, unless this process is a fork: threads stay behind, so whoever waited for one here would for ever."""
        if os.getpid() != self.process:
            raise StowageError("this search goes on in the process that began it; save it there and load it here")
        return self

    def start(self, time_limit: float | None, evaluations: int | None) -> None:
        with self.beginning:
            if self.thread is not None:
                if self.state == "running" and not self.stop.is_set():
                    return
                self.thread.join()  # cancelled or ended a moment ago
            self.stop.clear()
            self.ended.clear()
            self.state, self.error = "running", None
            self.began = perf_counter() - self.course.seconds
            self.thread = threading.Thread(
                target=self._run, args=(time_limit, evaluations), name="stowage-search", daemon=True
            )
            self.thread.start()

    def _run(self, time_limit: float | None, evaluations: int | None) -> None:
        course, begin = self.course, perf_counter()
        most = None if evaluations is None else course.evaluations + evaluations
        state: State = "failed"
        try:
            with ThreadPoolExecutor(self.threads, "stowage-search-worker") as pool:

                def each(function: Callable[[Item], Result], items: Iterable[Item], /) -> list[Result]:
                    return list(pool.map(function, items))

                course.each = each
                while True:
                    over = time_limit is not None and perf_counter() - begin >= time_limit
                    over = over or (most is not None and course.evaluations >= most)
                    if course.done:
                        state = "done"
                        break
                    if self.stop.is_set() or (over and course.best is not None):
                        state = "cancelled" if self.stop.is_set() else "paused"
                        break
                    with self.turn:
                        course.seconds = self.searched()
                        course.step()
        except BaseException as error:
            self.error = error
        finally:
            course.seconds, self.began = self.searched(), None
            self.state = state
            self.ended.set()


def search_swaps(
    graph: Graph,
    machine: Machine,
    budget: str | int,
    *,
    host_budget: str | int | None = None,
    seconds: Seconds | None = None,
    method: str | None = None,
    seed: int = 0,
    time_limit: float | None = _SECONDS,
    evaluations: int | None = None,
    threads: int | None = None,
) -> SwapSearch:
    """Begin to search for the fastest plan within a budget; returns at once.

    Args:
        graph: a step; its workspaces are planned for.
        machine: its host link carries the copies, its device's alignment holds for every offset.
        budget: device bytes, or text such as `"8GiB"` or `"50%"` of what the step takes when nothing is swapped.
        host_budget: bytes of pinned host memory, likewise; None for no limit.
        seconds: `[ops]`, how long each op runs; without it, the machine's roofline.
        method: one of `METHODS`; None for `"joint"`, the best there is.
        seed: for random choices.
        time_limit: seconds after which the search pauses; None for as long as it finds anything.
        evaluations: number of timed plans after which it pauses; None for no limit.
        threads: how many to search with; all cores by default.

    Raises:
        StowageError: the method is unknown, the seed or a limit is none, or no plan fits; the sentence names the least
            budget that would do.
    """
    problem, host = problem_of(graph, machine, budget, host_budget, seconds)
    return SwapSearch(Course(problem, host, method or DEFAULT, seed), time_limit, evaluations, threads)


def load_search(
    path: str | Path,
    graph: Graph,
    machine: Machine,
    *,
    seconds: Seconds | None = None,
    time_limit: float | None = _SECONDS,
    evaluations: int | None = None,
    threads: int | None = None,
) -> SwapSearch:
    """Go on with a search that was saved, as if it had never stopped.

    Args:
        path: a file that `SwapSearch.save` wrote.
        graph, machine, seconds: as when the search was begun.
        time_limit, evaluations, threads: as in `search_swaps`.

    Raises:
        StowageError: the file is damaged, or from a search for another graph, machine or other op times.
    """
    return SwapSearch(read_course(path, graph, machine, seconds), time_limit, evaluations, threads)
