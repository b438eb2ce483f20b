"""The search message in words: its progress, and how far the best plan is from the bound."""

from __future__ import annotations

from planner.swap import SwapSearch
from planner.units import format_percent
from widgets.messages import Message, search_message
from widgets.session.state.session_state import SessionState, sentence_of

_CLOSE = 1.0001
_NO_PLAN = "The search was stopped before it had any plan: resume it, or let it run a little longer."


def words(session_state: SessionState, state: str, rate: float) -> Message:
    """The search message.

    Args:
        session_state: the session state.
        state: state of the search, as in `search_message`.
        rate: plans timed per second.
    """
    search = session_state.search
    if search is None:
        return search_message(
            state, "laying out the graph", limit_seconds=session_state.search_limit, seed=session_state.seed,
            baselines=session_state.baselines, bound_seconds=session_state.bound_seconds,
            sentence=_NO_PLAN if state == "cancelled" else "",
        )  # fmt: skip
    progress = search.progress
    return search_message(
        state, progress.doing, progress.share, progress.seconds, session_state.search_limit, progress.evaluations, rate,
        session_state.seed, search.history, search.baselines or session_state.baselines, progress.bound_seconds,
        progress.ideal_seconds, _sentence(search, state),
    )  # fmt: skip


def _sentence(search: SwapSearch, state: str) -> str:
    progress = search.progress
    if state == "running":
        return ""
    if state == "failed":
        try:
            search.wait()
        except Exception as error:
            return sentence_of(error)
    if progress.step_seconds is None:
        return _NO_PLAN
    if progress.step_seconds <= progress.bound_seconds * _CLOSE:
        return "No plan can be faster: the lower bound is met."
    over = f"{format_percent(progress.step_seconds / progress.bound_seconds - 1)} above the lower bound"
    return {
        "cancelled": f"Cancelled with the best plan {over}; resume goes on from here.",
        "paused": f"The time is up with the best plan {over}; resume goes on from here.",
        "done": f"Nothing is left to try; the best plan is {over}.",
    }.get(state, "")
