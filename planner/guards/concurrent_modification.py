"""Detection of changes that another thread makes to a model while it is inspected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from planner.errors import StowageError

_MESSAGE = "changed size during iteration"


@contextmanager
def undisturbed() -> Iterator[None]:
    """Raise a StowageError if Python finds that a dict or a set has changed size during iteration."""
    try:
        yield
    except RuntimeError as error:
        if _MESSAGE not in str(error):
            raise
        raise StowageError(
            "another thread changes the model, or what its code reads, while the step is looked at: let it wait until "
            "the step is made"
        ) from error
