"""The limit on what may run again, as users write it."""

from __future__ import annotations

from math import inf, isfinite

from planner.errors import StowageError
from planner.swap.problem.problem import Problem
from planner.swap.search.driver import RECOMPUTING


def check_recompute_limit(limit: str | float | None, method: str) -> None:
    """Check a limit.

    Raises:
        StowageError: it is not an amount above 0, or the method runs nothing again.
    """
    if limit is None:
        return
    _parsed(limit)
    if method not in RECOMPUTING:
        raise StowageError(
            f'a recompute limit is for the methods {", ".join(sorted(RECOMPUTING))}, and "{method}" runs each op once; '
            "drop the limit or choose one of them"
        )


def recompute_seconds_allowed(problem: Problem, limit: str | float | None) -> float:
    """The most seconds that ops may run again; infinite without a limit.

    Args:
        problem: what is planned.
        limit: seconds, or text such as `"10%"` for a share of the step's time with infinite memory; None for no limit.

    Raises:
        StowageError: it is not an amount above 0.
    """
    if limit is None:
        return inf
    amount, is_share = _parsed(limit)
    return amount * problem.ideal_seconds if is_share else amount


def _parsed(limit: str | float) -> tuple[float, bool]:
    """The amount, and whether it is a share."""
    text = str(limit).strip()
    is_share = text.endswith("%")
    try:
        amount = float(text.removesuffix("%").removesuffix("s").strip())
    except ValueError as error:
        raise StowageError(
            f'a recompute limit of {limit!r} is not an amount; write seconds or a share, such as 0.5 or "10%"'
        ) from error
    if not (amount > 0 and isfinite(amount)):
        raise StowageError(
            f"a recompute limit must be more than 0, got {limit}; for a plan in which nothing runs again, take "
            'the method "swap"'
        )
    return (amount / 100 if is_share else amount), is_share
