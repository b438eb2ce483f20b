"""The search message in words: its progress, and how far the best plan is from the bound."""

from __future__ import annotations

from planner.swap import RECOMPUTING_METHODS, SwapSearch
from planner.units import format_percent
from widgets.messages import Message, search_message
from widgets.session.state.session_state import SessionState, sentence_of

_CLOSE = 1.0001
_NO_PLAN = "The search was stopped before it had any plan: resume it, or let it run a little longer."


def words(session_state: SessionState, state: str, rate: float, sentence: str = "") -> Message:
    """The search message.

    Args:
        session_state: the session state.
        state: state of the search, as in `search_message`.
        rate: plans timed per second.
        sentence: comment on the state; the usual one by default.
    """
    search, method = session_state.search, session_state.method
    if search is None:
        return search_message(
            state, method, "laying out the graph", limit_seconds=session_state.search_limit, seed=session_state.seed,
            baselines=session_state.baselines, bound_seconds=session_state.bound_seconds,
            sentence=sentence or (_NO_PLAN if state == "cancelled" else ""),
        )  # fmt: skip
    progress = search.progress
    return search_message(
        state, method, progress.doing, progress.share, progress.seconds, session_state.search_limit,
        progress.evaluations, rate, session_state.seed, search.history, search.baselines or session_state.baselines,
        progress.bound_seconds, progress.ideal_seconds, sentence or _sentence(method, search, state),
    )  # fmt: skip


def _sentence(method: str, search: SwapSearch, state: str) -> str:
    progress = search.progress
    if state == "running":
        return ""
    if state == "failed" or (state == "done" and progress.step_seconds is None):
        try:
            search.wait()
        except Exception as error:
            return sentence_of(error)
    if progress.step_seconds is None:
        return _NO_PLAN
    if progress.step_seconds <= progress.bound_seconds * _CLOSE:
        kind = "No plan" if method in RECOMPUTING_METHODS else "No plan that runs each op once"
        return f"{kind} can be faster: the lower bound is met."
    over = f"{format_percent(progress.step_seconds / progress.bound_seconds - 1)} above the lower bound"
    return {
        "cancelled": f"Cancelled with the best plan {over}; resume goes on from here.",
        "paused": f"The time is up with the best plan {over}; resume goes on from here.",
        "done": f"Nothing is left to try; the best plan is {over}.",
    }.get(state, "")
