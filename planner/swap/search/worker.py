"""What runs a search in threads: turns, and moments between turns."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from math import inf
from time import perf_counter
from typing import Literal

from planner.ending import at_end
from planner.errors import StowageError
from planner.swap.methods.method import Each, Item, Result
from planner.swap.search.driver import Course
from planner.swap.stop import Stop, Stopped

State = Literal["running", "cancelled", "paused", "done", "failed"]
#: Seconds that a turn is waited for before it is cut short.
_PATIENCE = 0.5


class Runner:
    """What the search's thread holds on to; not the handle, so that dropping that can stop it.

    Args:
        make: lays out what is planned; called in the search's thread.
        ideal: seconds of the step with infinite memory.
        stop: the flag of what is planned.
        threads: how many to search with.
    """

    def __init__(self, make: Callable[[], Course], ideal: float, stop: Stop, threads: int) -> None:
        self.make, self.ideal, self.flag, self.threads = make, ideal, stop, threads
        self.course: Course | None = None
        self.cancelled, self.ended, self.turn = threading.Event(), threading.Event(), threading.Lock()
        self.door = threading.Lock()  # whoever holds it has the next turn
        self.beginning, self.process = threading.Lock(), os.getpid()
        self.state: State = "paused"
        self.error: BaseException | None = None
        self.began: float | None = None
        self.spent = 0.0
        self.thread: threading.Thread | None = None
        at_end(self.cancel, early=True)

    def searched(self) -> float:
        """Seconds spent searching."""
        began = self.began
        return self.spent if began is None else perf_counter() - began

    def at_home(self) -> Runner:
        """Itself, unless this process is a fork: threads stay behind, so whoever waited for one here would for ever."""
        if os.getpid() != self.process:
            raise StowageError("this search goes on in the process that began it; save it there and load it here")
        return self

    def cancel(self) -> None:
        """End soon; the turn at work is undone."""
        self.cancelled.set()
        self.flag.set()

    def start(self, time_limit: float | None, evaluations: int | None) -> None:
        """Go on in a thread, unless one is at work."""
        with self.beginning:
            if self.thread is not None:
                if self.state == "running" and not self.cancelled.is_set():
                    return
                self.thread.join()  # cancelled or ended a moment ago
            self.cancelled.clear()
            self.ended.clear()
            self.state, self.error = "running", None
            self.began = perf_counter() - self.spent
            self.thread = threading.Thread(
                target=self._run, args=(time_limit, evaluations), name="stowage-search", daemon=True
            )
            self.thread.start()

    @contextmanager
    def between_turns(self) -> Iterator[Course]:
        """The course while nothing changes it; a long turn is undone and begun again afterwards.

        Raises:
            StowageError: the graph is not laid out yet.
        """
        with self.door:
            if not self.turn.acquire(timeout=_PATIENCE):
                self.flag.set()
                self.turn.acquire()
            try:
                if self.course is None:
                    raise StowageError("the search is still laying out the graph; save it a moment later")
                self.flag.clear()
                self.course.settle()
                yield self.course
            finally:
                self._let_go_on()
                self.turn.release()

    def lay_out(self) -> None:
        """Make the course if there is none yet."""
        if self.course is None:
            self.course = self.make()
            self.spent = self.course.seconds

    def _let_go_on(self) -> None:
        """Clear the flag, unless the search was cancelled; whoever cancels sets the flag last."""
        self.flag.clear()
        if self.cancelled.is_set():
            self.flag.set()

    def _run(self, time_limit: float | None, evaluations: int | None) -> None:
        state: State = "failed"
        try:
            with ThreadPoolExecutor(self.threads, "stowage-search-worker") as pool:
                until = inf if time_limit is None else perf_counter() + time_limit
                done = 0 if self.course is None else self.course.evaluations
                state = self._search(Pool(pool), until, inf if evaluations is None else done + evaluations)
        except BaseException as error:
            self.error = error
        finally:
            self.spent, self.began = self.searched(), None
            if self.course is not None:
                self.course.seconds = self.spent
            self.state = state
            self.ended.set()

    def _search(self, pool: Each, until: float, most: float) -> State:
        """Turn after turn, until there is nothing left to do, or no time or no evaluations are left to do it."""
        while True:
            with self.door:
                self.turn.acquire()
            try:
                course = self.course
                if course is not None and course.done:
                    return "done"
                if self.cancelled.is_set():
                    return "cancelled"
                over = course is not None and (perf_counter() >= until or course.evaluations >= most)
                if over and course is not None and course.best is not None:
                    return "paused"
                self._let_go_on()
                if course is None:
                    self.lay_out()
                else:
                    course.each, course.seconds = pool, self.searched()
                    course.step()
            except Stopped:
                pass  # cancelled, or somebody wants a moment between turns
            finally:
                self.turn.release()


class Pool:
    """Applies functions in threads; when it returns or raises, all that were begun have ended."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    def __call__(self, function: Callable[[Item], Result], items: Iterable[Item], /) -> list[Result]:
        """Apply."""
        futures = [self._pool.submit(function, item) for item in items]
        wait(futures)
        return [future.result() for future in futures]
