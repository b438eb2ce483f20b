"""The handle of a search that runs in a thread: waiting for it, cancelling and resuming it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf
from numbers import Real
from time import perf_counter
from typing import Generic, TypeVar

from planner.errors import StowageError
from planner.finalizers import on_dropped
from planner.progress import ShowProgress, reporting
from planner.search.search_thread import S, SearchThread

P = TypeVar("P")
#: Seconds for which a search goes on unless told otherwise.
SECONDS = 30.0
#: The error message if there is no plan yet.
STOPPED = "the search was stopped before it had any plan; let it run a little longer, or resume it"
_LOOK_AGAIN = 0.1


class SearchHandle(ABC, Generic[S, P]):
    """A running search for plans; dropping the last reference to it stops it.

    Args:
        runner: its thread.
        time_limit: seconds after which the search pauses; None for no limit.
        evaluations: number of evaluated plans after which it pauses; None for no limit.
    """

    def __init__(self, runner: SearchThread[S], time_limit: float | None, evaluations: int | None) -> None:
        self._runner = runner
        on_dropped(self, runner.cancel)
        self.resume(time_limit=time_limit, evaluations=evaluations)

    @property
    @abstractmethod
    def best(self) -> P | None:
        """The best plan so far, always a valid one; None before there is any."""

    @property
    def running(self) -> bool:
        """Whether it goes on: False once it was cancelled, though it takes a moment to stop, or has ended or paused."""
        return self._runner.state == "running" and not self._runner.cancelled.requested

    @property
    def error(self) -> BaseException | None:
        """The error that ended the search, if any."""
        return self._runner.error

    @abstractmethod
    def _plan(self, search_state: S) -> P:
        """The best plan; an error that says why if there is none."""

    @abstractmethod
    def _doing(self) -> tuple[float, str]:
        """The share done of the search, from 0 to 1, and what is being tried and reached."""

    def wait(self, seconds: float | None = None, *, progress: ShowProgress = True) -> P:
        """Wait until the search ends or that many seconds have passed; returns the best plan so far.

        Interrupting the wait cancels the search.

        Args:
            seconds: the longest time to wait; None to wait until the search ends.
            progress: True shows progress, False shows nothing; a function is called several times a second with the
                share done, 0 to 1, and what is being done.

        Raises:
            StowageError: there is no plan yet, or none within the limits; or the process was forked meanwhile.
        """
        runner = self._runner.at_home()
        until = inf if seconds is None else perf_counter() + seconds
        try:
            with reporting(progress) as report:
                while not (ended := runner.ended.wait(min(_LOOK_AGAIN, max(0.0, until - perf_counter())))):
                    if perf_counter() >= until:
                        break
                    report(*self._share_done())
        except BaseException:  # an interrupt, or `progress` raised
            self.cancel()
            raise
        if runner.error is not None:
            raise runner.error
        if not ended and self.best is None:
            raise StowageError(f"the search has no plan yet after {runner.searched():.1f} s; wait a little longer")
        if runner.search_state is None:
            raise StowageError(STOPPED)
        return self._plan(runner.search_state)

    def _share_done(self) -> tuple[float, str]:
        """The share done of the search or of its time limit, and what is being tried."""
        share, doing = self._doing()
        spent, limit = self._begun
        of_time = min(1.0, (self._runner.searched() - spent) / limit) if limit else share
        return max(share, of_time), doing

    def cancel(self) -> None:
        """Stop within a second; what was found is kept. Cancelling again does nothing.

        The search step in progress is rolled back, and repeated when the search is resumed.
        """
        self._runner.cancel()

    def resume(self, *, time_limit: float | None = SECONDS, evaluations: int | None = None) -> None:
        """Continue from where the search stopped; does nothing while it runs or when nothing is left to try.

        Args:
            time_limit: stop again after this many seconds, without those in which kernels are compiled; None for no
                limit.
            evaluations: stop again after this many more evaluations; None for no limit.

        Raises:
            StowageError: a limit is not a number or is below 0; or the process was forked meanwhile.
        """
        check_limits(time_limit, evaluations)
        self._begun = self._runner.searched(), time_limit
        self._runner.at_home().start(time_limit, evaluations)


def check_limits(time_limit: float | None, evaluations: int | None = None) -> None:
    """Check limits.

    Raises:
        StowageError: a limit is not a number or is below 0.
    """
    for name, limit in (("the time limit", time_limit), ("the number of evaluations", evaluations)):
        if limit is not None and not (isinstance(limit, Real) and limit >= 0):
            raise StowageError(f"{name} must be 0 or more, got {limit!r}")
