"""How many batches there are."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Any


def batch_count(batches: Iterable[Any]) -> int | None:
    """The number of batches, None if unknown; a loader of an iterable data set has `__len__` but may not know it."""
    if not isinstance(batches, Sized):
        return None
    try:
        return len(batches)
    except (TypeError, NotImplementedError):
        return None
