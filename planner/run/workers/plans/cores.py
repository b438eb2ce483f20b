"""The processor cores that workers of one host share."""

from __future__ import annotations

import os


def cores() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def has_cores_to_spare(workers: int) -> bool:
    """Whether so many workers have more than one core each, so that exchanges take no time from their ops."""
    return cores() >= 2 * workers
