"""Waiting for work that Ctrl-C stops without losing what it has found."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from planner.cancel import CancelToken
from planner.errors import StowageError
from planner.progress import Progress
from planner.search import SearchHandle

P = TypeVar("P")


def wait_or_stop(search: SearchHandle[Any, P], report: Progress) -> tuple[P, bool]:
    """Wait for a search; returns its best plan, and whether Ctrl-C stopped it.

    Raises:
        KeyboardInterrupt: it was stopped before it had a plan.
        StowageError: as the search does.
    """
    try:
        return search.wait(progress=report), False
    except KeyboardInterrupt:  # has cancelled the search, which ends after its step
        try:
            return search.wait(progress=False), True
        except StowageError:
            if search.best is not None:
                raise
        raise


@contextmanager
def stopped_by_interrupt() -> Iterator[CancelToken]:
    """A token that the first Ctrl-C cancels; the second ends the command at once."""
    stop, before = CancelToken(), signal.getsignal(signal.SIGINT)

    def cancel(*_: object) -> None:
        stop.cancel()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, cancel)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
