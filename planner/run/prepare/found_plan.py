"""The wait for a plan that a run begins with: no longer than it could still save in the steps to be made."""

from __future__ import annotations

from contextlib import suppress
from time import sleep
from typing import TYPE_CHECKING

from planner.errors import StowageError
from planner.plan import SwapPlan
from planner.progress import Progress

if TYPE_CHECKING:
    from planner.swap import SearchProgress, SwapSearch

#: Seconds of every search, in which most of what there is to save is found.
_LEAST_SECONDS = 1.0
_LOOK_SECONDS = 0.02


def found_plan(search: SwapSearch, steps: int | None, planning: Progress) -> SwapPlan:
    """The plan of a search once it has ended, or has taken longer than any other plan could still save.

    So planning and steps together never take twice as long as with the best moment to stop, but for the first second.
    The search is cancelled if the wait for it is.

    Args:
        search: with a time limit.
        steps: that are made by the plan; None if that is not known, which is worth all the time there is.
        planning: is told how far it is.

    Raises:
        StowageError: there is no plan within its budget.
        Cancelled: cancellation was requested.
    """
    try:
        while (progress := search.progress).state == "running":
            planning(progress.share, progress.doing)
            if steps is not None and progress.seconds > max(_LEAST_SECONDS, _may_save(progress, steps)):
                search.cancel()
            sleep(_LOOK_SECONDS)
    except BaseException:
        search.cancel()
        with suppress(StowageError):
            search.wait()
        raise
    return search.wait()


def _may_save(progress: SearchProgress, steps: int) -> float:
    """The most seconds that a plan found later could save in so many steps."""
    if progress.step_seconds is None:
        return float("inf")
    return steps * (progress.step_seconds - progress.bound_seconds)
