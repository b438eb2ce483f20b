"""Requests to stop a run: between two steps if that is soon, otherwise during a step, which is then abandoned."""

from __future__ import annotations

from math import inf
from threading import Event
from time import perf_counter

#: Seconds that the current step has to end.
PATIENCE = 0.4


class RunCancelled(BaseException):
    """The run was asked to stop; a BaseException, so that no code below the run's own loop handles it as an error."""


class StopRequest:
    """A request to stop, made in one thread and polled in another."""

    def __init__(self) -> None:
        self._asked = Event()
        self._overdue = inf

    @property
    def asked(self) -> bool:
        """Whether to stop."""
        return self._asked.is_set()

    def ask(self, patience: float = PATIENCE) -> None:
        """Stop between two steps, or during one that takes longer than `patience` seconds from now."""
        self._overdue = min(self._overdue, perf_counter() + patience)
        self._asked.set()

    def between_steps(self) -> None:
        """Raise RunCancelled if a stop was requested."""
        if self._asked.is_set():
            raise RunCancelled

    def within_a_step(self) -> None:
        """Raise RunCancelled if a stop was requested and its patience has run out."""
        if perf_counter() > self._overdue:
            raise RunCancelled
