"""What ops that run again cost, in words."""

from __future__ import annotations

from planner.units import format_percent, several


def recompute_text(count: int, seconds: float, compute_seconds: float) -> str:
    """How many ops run again, and what that adds to the compute of a step; nothing where none do.

    Args:
        count: how many run again.
        seconds: for how long.
        compute_seconds: how long all ops run together.
    """
    if not count:
        return ""
    once = compute_seconds - seconds
    return f"runs {several(count, 'op')} again" + (f", +{format_percent(seconds / once)} compute" if once > 0 else "")
