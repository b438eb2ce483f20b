"""Saying so where another thread changes a model while it is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from planner.errors import StowageError

_SAID = "changed size during iteration"


@contextmanager
def undisturbed() -> Iterator[None]:
    """Raise a StowageError where Python finds that a dict or a set has changed under a walk over it."""
    try:
        yield
    except RuntimeError as error:
        if _SAID not in str(error):
            raise
        raise StowageError(
            "another thread changes the model, or what its code reads, while the step is looked at: let it wait until "
            "the step is made"
        ) from error
