"""Runs a search in threads, one search step at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from math import inf
from time import perf_counter
from typing import Literal

from planner.cancel import Cancelled, CancelToken
from planner.errors import StowageError
from planner.shutdown import on_shutdown
from planner.swap.methods.method import Each, Item, Result
from planner.swap.search.driver import SearchState

State = Literal["running", "cancelled", "paused", "done", "failed"]
#: Seconds to wait for a search step before it is interrupted.
_PATIENCE = 0.5


class SearchThread:
    """What the search's thread refers to; not the handle, so that dropping the handle can stop the search.

    Args:
        make: creates the search state; called by `lay_out`.
        ideal: seconds of the step with infinite memory.
        stop: the cancel token of the problem, which also interrupts a search step that is then repeated.
        threads: number of search threads.
    """

    def __init__(self, make: Callable[[], SearchState], ideal: float, stop: CancelToken, threads: int) -> None:
        self.make, self.ideal, self.stop, self.threads = make, ideal, stop, threads
        self.search_state: SearchState | None = None
        self.cancelled, self.ended, self.search_step = CancelToken(), threading.Event(), threading.Lock()
        self.step_lock = threading.Lock()  # its holder has the next search step
        self.beginning, self.process = threading.Lock(), os.getpid()
        self.state: State = "paused"
        self.error: BaseException | None = None
        self.began: float | None = None
        self.spent = 0.0
        self.thread: threading.Thread | None = None
        on_shutdown(self.cancel, early=True)

    def searched(self) -> float:
        """Seconds spent searching."""
        began = self.began
        return self.spent if began is None else perf_counter() - began

    def at_home(self) -> SearchThread:
        """Itself, unless this process is a fork: threads do not survive a fork, so waiting for one would never end.

        Raises:
            StowageError: this process is a fork.
        """
        if os.getpid() != self.process:
            raise StowageError("this search goes on in the process that began it; save it there and load it here")
        return self

    def cancel(self) -> None:
        """End soon; the search step in progress is rolled back."""
        self.cancelled.cancel()
        self.stop.cancel()

    def start(self, time_limit: float | None, evaluations: int | None) -> None:
        """Continue in a thread, unless one is running."""
        with self.beginning:
            if self.thread is not None:
                if self.state == "running" and not self.cancelled.requested:
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
    def between_turns(self) -> Iterator[SearchState]:
        """The search state while nothing changes it; a long search step is rolled back and restarted afterwards.

        Raises:
            StowageError: the graph is not laid out yet.
        """
        with self.step_lock:
            if not self.search_step.acquire(timeout=_PATIENCE):
                self.stop.cancel()
                self.search_step.acquire()
            try:
                if self.search_state is None:
                    raise StowageError("the search is still laying out the graph; save it a moment later")
                self.stop.clear()
                self.search_state.settle()
                yield self.search_state
            finally:
                self._let_go_on()
                self.search_step.release()

    def lay_out(self) -> None:
        """Create the search state if there is none yet."""
        if self.search_state is None:
            self.search_state = self.make()
            self.spent = self.search_state.seconds

    def _let_go_on(self) -> None:
        """Let search steps go on, unless the search was cancelled; `cancel` sets it last."""
        self.stop.clear()
        if self.cancelled.requested:
            self.stop.cancel()

    def _run(self, time_limit: float | None, evaluations: int | None) -> None:
        state: State = "failed"
        try:
            with ThreadPoolExecutor(self.threads, "stowage-search-worker") as pool:
                until = inf if time_limit is None else perf_counter() + time_limit
                done = 0 if self.search_state is None else self.search_state.evaluations
                state = self._search(ThreadMap(pool), until, inf if evaluations is None else done + evaluations)
        except BaseException as error:
            self.error = error
        finally:
            self.spent, self.began = self.searched(), None
            if self.search_state is not None:
                self.search_state.seconds = self.spent
            self.state = state
            self.ended.set()

    def _search(self, pool: Each, until: float, most: float) -> State:
        """Run search steps until nothing is left to do, or no time or no evaluations are left."""
        while True:
            with self.step_lock:
                self.search_step.acquire()
            try:
                search_state = self.search_state
                if search_state is not None and search_state.done:
                    return "done"
                if self.cancelled.requested:
                    return "cancelled"
                over = search_state is not None and (perf_counter() >= until or search_state.evaluations >= most)
                if over and search_state is not None and search_state.best is not None:
                    return "paused"
                self._let_go_on()
                if search_state is None:
                    self.lay_out()
                else:
                    search_state.each, search_state.seconds = pool, self.searched()
                    search_state.step()
            except Cancelled:
                pass  # cancelled, or interrupted by `between_turns`
            finally:
                self.search_step.release()


class ThreadMap:
    """Applies functions in threads; when it returns or raises, all calls have ended."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    def __call__(self, function: Callable[[Item], Result], items: Iterable[Item], /) -> list[Result]:
        """Apply."""
        futures = [self._pool.submit(function, item) for item in items]
        wait(futures)
        return [future.result() for future in futures]
