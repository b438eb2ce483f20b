"""Work on what ranks share, such as a folder: what fails at one of them is raised at all, alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.cancel import Cancelled
from planner.errors import StowageError, first_line
from planner.run.workers.launch.ranks import Ranks


def at_first(ranks: Ranks, work: Callable[[], Any]) -> Any:
    """Do something at rank 0 while all others wait for it.

    Args:
        ranks: all of them, which call this together.
        work: returns what JSON has, which is returned everywhere.

    Raises:
        StowageError, OSError: rank 0 has raised it.
        RankFailedError: a rank has failed.
    """
    return at_each(ranks, work if ranks.rank == 0 else lambda: None)[0]


def at_each(ranks: Ranks, work: Callable[[], Any]) -> list[Any]:
    """Do something at every rank; returns, for each of them, what came of it.

    Args:
        ranks: all of them, which call this together.
        work: returns what JSON has.

    Raises:
        StowageError, OSError: a rank has raised it; the first one's.
        RankFailedError: a rank has failed.
    """
    error: list[str] | None = None
    value = None
    try:
        try:
            value = work()
        except StowageError as raised:
            error = ["StowageError", str(raised)]
        except (OSError, RuntimeError) as raised:
            error = ["OSError", getattr(raised, "strerror", None) or first_line(raised)]
        found = ranks.share([value, error])
    except StowageError:
        raise
    except BaseException as raised:  # the others wait for this rank, and would wait for good
        stopped = isinstance(raised, Cancelled | KeyboardInterrupt)
        ranks.fail("was stopped" if stopped else f"failed: {type(raised).__name__}: {raised}")
        raise
    for rank, (_, raised_there) in enumerate(found):
        if raised_there is not None:
            kind, text = raised_there
            raise StowageError(text) if kind == "StowageError" else OSError(f"{text} (at rank {rank})")
    return [value for value, _ in found]
