"""The small messages: the state of the session, each in a few numbers and one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from widgets.messages.message import Message, changed, message
from widgets.messages.message_kind import Rest


def loading_message(name: str, doing: str, share: float | None, ops: int | None, seconds: float) -> Message:
    """The step is being captured."""
    return message("loading", {"name": name, "doing": doing, "share": share, "ops": ops, "seconds": seconds})


def refused_message(title: str, sentence: str) -> Message:
    """The capture failed or was cancelled."""
    return message("refused", {"title": title, "sentence": sentence})


def loading_at_rest(sent: Message, rest: Rest, _: Mapping[str, Message]) -> Message:
    """A capture that is still under way as one that was given up, once its session is closed."""
    if rest == "saved":
        return sent
    return refused_message("Closed", "it was closed before the step was captured; open it again")


def samples_message(points: Sequence[tuple[int, float]]) -> Message:
    """The cost curve as far as it is known: pairs of budget in bytes and seconds of the step, by budget."""
    return message("samples", {"points": points})


def budget_message(budget: int, verdict: str, state: str, doing: str, sentence: str, machine: str = "") -> Message:
    """The budget, and whether there is a plan for it; `machine` is one that still has to be assessed."""
    return message("budget", {
        "budget_bytes": budget, "verdict": verdict, "state": state, "doing": doing, "sentence": sentence,
        "machine": machine,
    })  # fmt: skip


def budget_at_rest(sent: Message, rest: Rest, latest: Mapping[str, Message]) -> Message:
    """A budget that is still planned for as one with the plan that is shown, if that is for this budget."""
    if sent.content["state"] != "planning":
        return sent
    if rest == "closed":
        return changed(sent, state="none", doing="", sentence="It was closed before there was a plan.")
    plan = latest["plan"].content if "plan" in latest else None
    if plan is not None and not plan["placeholder"] and plan["budget_bytes"] == sent.content["budget_bytes"]:
        return changed(sent, state="planned", doing="", sentence="")
    return changed(sent, state="none", doing="", sentence="The page was saved before there was a plan.")


def front_message(points: Sequence[Sequence[Any]], doing: str, share: float | None) -> Message:
    """Plans by memory and step time."""
    return message("front", {"points": points, "doing": doing, "share": share})


def front_at_rest(sent: Message, _: Rest, __: Mapping[str, Message]) -> Message:
    """The front without the work that adds to it."""
    return sent if sent.content["share"] is None else changed(sent, doing="", share=None)


def compare_message(name: str, plan: dict[str, Any] | None) -> Message:
    """The plan that the current one is compared with."""
    return message("compare", {"name": name, "plan": plan})


def notice_message(sentence: str) -> Message:
    """One line about something that just happened."""
    return message("notice", {"sentence": sentence})


def export_message(filename: str, mime: str, data: bytes, view: Any = None) -> Message:
    """A file for the browser to save, once: by the view `view` if given."""
    to = {} if view is None else {"view": view}
    return Message(
        {"kind": "exported", "filename": filename, "mime": mime, "columns": [["bytes", "u1", len(data)]], **to}, (data,)
    )
