"""A search for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.swap import Point
from widgets.messages.message import Message, changed, message
from widgets.messages.message_kind import Rest


def search_message(
    state: str,
    method: str,
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
    """Pack the progress of a search.

    Args:
        state: `"idle"`, `"running"`, `"cancelled"`, `"paused"`, `"done"`, `"failed"` or `"nothing"` (to search for).
        method: of the search, one of `planner.swap.METHODS`.
        doing, share: the current activity, and the share of it that is done.
        seconds, limit_seconds: time spent searching, and the time after which it pauses; None for no limit.
        evaluations, rate: plans timed, and plans timed per second at present.
        seed: seed of the random choices.
        history: every new best plan.
        baselines: seconds by baseline, None where it has no plan.
        bound_seconds, ideal_seconds: lower bound on the step time; step time with infinite memory.
        sentence: comment on the state.
    """
    found = [[point.seconds, point.evaluations, point.step_seconds, point.method] for point in history]
    return message("search", {
        "state": state, "method": method, "doing": doing, "share": share, "seconds": seconds,
        "limit_seconds": limit_seconds, "evaluations": evaluations, "rate": rate, "seed": seed,
        "history": found, "baselines": list((baselines or {}).items()), "bound_seconds": bound_seconds,
        "ideal_seconds": ideal_seconds, "sentence": sentence,
    })  # fmt: skip


def search_at_rest(sent: Message, rest: Rest, _: Mapping[str, Message]) -> Message:
    """A search that is still running as one that was stopped."""
    if sent.content["state"] != "running":
        return sent
    if rest == "closed":
        return changed(sent, state="cancelled", doing="", sentence="It was closed while this search went on.")
    return changed(sent, state="paused", doing="", sentence="The page was saved while this search went on.")
