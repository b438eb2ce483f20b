"""Runs a search in a thread, one search step at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import inf
from typing import Generic, Literal, Protocol, TypeVar

from planner.cancel import Cancelled, CancelToken
from planner.errors import StowageError
from planner.search.time_limit import TimeLimit
from planner.shutdown import on_shutdown

SearchStatus = Literal["running", "cancelled", "paused", "done", "failed"]
#: Seconds to wait for a search step before it is interrupted.
_PATIENCE = 0.5
#: Seconds between two looks at the search state: a signal delivered to another thread does not end a wait.
_LOOK_SECONDS = 0.02


class StepwiseSearch(Protocol):
    """The state of a search that advances by steps.

    Attributes:
        seconds: time spent searching.
    """

    seconds: float

    @property
    def evaluations(self) -> int:
        """How many plans were evaluated."""

    @property
    def best(self) -> object | None:
        """The best plan so far."""

    @property
    def done(self) -> bool:
        """Whether nothing is left to try."""

    def step(self) -> None:
        """Run the next search step.

        Raises:
            Cancelled: cancellation was requested; the next call repeats this step.
        """

    def settle(self) -> None:
        """Apply the result of the last search step if it is still pending."""


S = TypeVar("S", bound=StepwiseSearch)


class SearchThread(Generic[S]):
    """What the search's thread refers to; not the handle, so that dropping the handle can stop the search.

    Args:
        make: creates the search state; called by `lay_out`.
        stop: the cancel token of the problem, which also interrupts a search step that is then repeated.
    """

    def __init__(self, make: Callable[[], S], stop: CancelToken) -> None:
        from planner.search_clock import search_seconds  # not to import numba for the help of a command

        self.make, self.stop, self.clock = make, stop, search_seconds
        self.search_state: S | None = None
        self.cancelled, self.ended, self.search_step = CancelToken(), threading.Event(), threading.Lock()
        self.step_lock = threading.Lock()  # its holder has the next search step
        self.limit = TimeLimit(stop, search_seconds)
        self.beginning, self.process = threading.Lock(), os.getpid()
        self.state: SearchStatus = "paused"
        self.error: BaseException | None = None
        self.began: float | None = None
        self.spent = 0.0
        self.thread: threading.Thread | None = None
        on_shutdown(self.cancel, early=True)

    def searched(self) -> float:
        """Seconds spent searching, without those in which kernels were compiled."""
        began = self.began
        return self.spent if began is None else self.clock() - began

    def at_home(self) -> SearchThread[S]:
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
            self.began = self.clock() - self.spent
            self.thread = threading.Thread(
                target=self._run, args=(time_limit, evaluations), name="stowage-search", daemon=True
            )
            self.thread.start()

    @contextmanager
    def between_turns(self) -> Iterator[S]:
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

    def laid_out(self) -> S | None:
        """Wait until the search state is there, and return it; None if the search was cancelled before.

        Raises:
            StowageError: it cannot be created; or this process is a fork.
        """
        self.at_home()
        while self.search_state is None and not self.ended.wait(_LOOK_SECONDS):
            pass
        if self.search_state is None and self.error is not None:
            raise self.error
        return self.search_state

    def at_work(self) -> AbstractContextManager[object]:
        """What is open while search steps run."""
        return nullcontext()

    def step(self, search_state: S) -> None:
        """Run one search step."""
        search_state.step()

    def _let_go_on(self) -> None:
        """Let search steps go on, unless the search was cancelled; `cancel` sets it last."""
        self.stop.clear()
        if self.cancelled.requested:
            self.stop.cancel()

    def _run(self, time_limit: float | None, evaluations: int | None) -> None:
        state: SearchStatus = "failed"
        try:
            until = inf if time_limit is None else self.clock() + time_limit
            with self.at_work(), self.limit.watched(until):
                done = 0 if self.search_state is None else self.search_state.evaluations
                state = self._search(until, inf if evaluations is None else done + evaluations)
        except BaseException as error:
            self.error = error
        finally:
            self.spent, self.began = self.searched(), None
            if self.search_state is not None:
                self.search_state.seconds = self.spent
            self.state = state
            self.ended.set()

    def _search(self, until: float, most: float) -> SearchStatus:
        """Run search steps until nothing is left to do, or no time or no evaluations are left.

        The time limit ends a step that is in progress, except the first one, as each search that is resumed gets
        further, and those before there is a plan.
        """
        steps = 0
        while True:
            with self.step_lock:
                self.search_step.acquire()
            try:
                search_state = self.search_state
                if search_state is not None and search_state.done:
                    return "done"
                if self.cancelled.requested:
                    return "cancelled"
                over = search_state is not None and (self.clock() >= until or search_state.evaluations >= most)
                self._let_go_on()
                if over and search_state is not None and search_state.best is not None:
                    return "paused"
                if search_state is None:
                    self.lay_out()
                else:
                    search_state.seconds = self.searched()
                    with self.limit.step(may_cut=steps > 0 and search_state.best is not None):
                        self.step(search_state)
                    steps += 1
            except Cancelled:
                pass  # cancelled, out of time, or interrupted by `between_turns`
            finally:
                self.search_step.release()
