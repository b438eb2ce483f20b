"""A search for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.swap import Point
from widgets.canvas.columns import Message, message


def search_message(
    state: str,
    doing: str = "",
    share: float | None = None,
    seconds: float = 0.0,
    limit_seconds: float | None = None,
    evaluations: int = 0,
    rate: float = 0.0,
    seed: int = 0,
    history: Sequence[Point] = (),
    baselines: Mapping[str, float | None] | None = None,
    bound_seconds: float | None = None,
    ideal_seconds: float | None = None,
    sentence: str = "",
) -> Message:
    """Pack how far a search is.

    Args:
        state: `"idle"`, `"running"`, `"cancelled"`, `"paused"`, `"done"`, `"failed"` or `"nothing"` to search for.
        doing, share: what is being tried, and how much of it is done.
        seconds, limit_seconds: spent searching, and after how many it pauses; None for no limit.
        evaluations, rate: plans timed, and per second at present.
        seed: for random choices.
        history: every new best plan.
        baselines: seconds by baseline, None where it has no plan.
        bound_seconds, ideal_seconds: no plan is faster; with infinite memory.
        sentence: what there is to say about the state.
    """
    found = [[point.seconds, point.evaluations, point.step_seconds, point.method] for point in history]
    return message("search", {
        "state": state, "doing": doing, "share": share, "seconds": seconds, "limit_seconds": limit_seconds,
        "evaluations": evaluations, "rate": rate, "seed": seed, "history": found,
        "baselines": list((baselines or {}).items()), "bound_seconds": bound_seconds, "ideal_seconds": ideal_seconds,
        "sentence": sentence,
    })  # fmt: skip
