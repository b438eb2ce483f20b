"""Ends the search step that is in progress when the time of a search is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from threading import Event, Lock, Thread

from planner.cancel import CancelToken

#: Seconds between two looks at the clock, which stops while kernels are compiled.
_LOOK_SECONDS = 0.05


class TimeLimit:
    """Interrupts a search step by the cancel token of its problem.

    Args:
        stop: the token.
        clock: seconds.
    """

    def __init__(self, stop: CancelToken, clock: Callable[[], float]) -> None:
        self._stop, self._clock = stop, clock
        self._lock, self._may_cut = Lock(), False

    @contextmanager
    def watched(self, until: float) -> Iterator[None]:
        """Interrupt the steps of this block that may be once the time is over.

        Args:
            until: on the clock; infinite for no limit.
        """
        over = Event()

        def watch() -> None:
            while not over.wait(max(until - self._clock(), _LOOK_SECONDS)):
                with self._lock:
                    if self._may_cut and self._clock() >= until:
                        self._stop.cancel()

        watcher = Thread(target=watch, name="stowage-search-limit", daemon=True)
        try:
            if until < inf:
                watcher.start()
            yield
        finally:
            over.set()
            if watcher.is_alive():
                watcher.join()

    @contextmanager
    def step(self, *, may_cut: bool) -> Iterator[None]:
        """Run a search step.

        Args:
            may_cut: whether it ends with the time.

        Raises:
            Cancelled: the time is over; the step changed nothing and can be repeated.
        """
        with self._lock:
            self._may_cut = may_cut
        try:
            yield
        finally:
            with self._lock:
                self._may_cut = False
