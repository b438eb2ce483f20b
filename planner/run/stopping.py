"""Asking a run to stop: between its steps where that is soon, else in the middle of one, which is then not made."""

from __future__ import annotations

from math import inf
from threading import Event
from time import perf_counter

#: Seconds that a step in the making is given to end.
PATIENCE = 0.4


class Cancelled(BaseException):
    """The run was asked to stop; nothing between here and the run's own loop may take it for an error."""


class Stop:
    """A request to stop, made in one thread and heeded in another."""

    def __init__(self) -> None:
        self._asked = Event()
        self._overdue = inf

    @property
    def asked(self) -> bool:
        """Whether to stop."""
        return self._asked.is_set()

    def ask(self, patience: float = PATIENCE) -> None:
        """Stop between two steps, or in the middle of one that takes longer than so many seconds from now."""
        self._overdue = min(self._overdue, perf_counter() + patience)
        self._asked.set()

    def between_steps(self) -> None:
        """Raise Cancelled if it was asked for."""
        if self._asked.is_set():
            raise Cancelled

    def within_a_step(self) -> None:
        """Raise Cancelled if it was asked for long enough ago."""
        if perf_counter() > self._overdue:
            raise Cancelled
