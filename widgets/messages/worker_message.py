"""What one worker of a partition does, in messages beside those of the whole step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from widgets.messages.message import Message, changed, message
from widgets.messages.message_kind import MessageKind, Rest

_PREFIX = "worker_"


def worker_message(
    state: str,
    worker: int = -1,
    workers: int = 0,
    *,
    doing: str = "",
    share: float | None = None,
    sentence: str = "",
    storages: Sequence[int] = (),
) -> Message:
    """Pack which worker is shown in place of the whole step.

    Args:
        state: `"none"`, `"making"`, `"shown"`, `"cancelled"` or `"failed"`.
        worker, workers: which of how many.
        doing, share: the current activity, and the share of it that is done.
        sentence: comment on the state.
        storages: by storage of the whole step, the worker's part of it, or -1 where that is not known.
    """
    return message("worker", {
        "state": state, "worker": worker, "workers": workers, "doing": doing, "share": share, "sentence": sentence,
    }, {"storages": ("i4", storages)})  # fmt: skip


def worker_at_rest(sent: Message, rest: Rest, _: Mapping[str, Message]) -> Message:
    """A worker whose graph is still being made as one that was given up."""
    if sent.content["state"] != "making":
        return sent
    why = "It was closed" if rest == "closed" else "The page was saved"
    return changed(sent, state="cancelled", doing="", share=None, sentence=f"{why} before this worker was planned.")


def of_worker(sent: Message) -> Message:
    """A message about a worker's graph as one beside those of the whole step."""
    return changed(sent, kind=f"{_PREFIX}{sent.kind}")


def kind_of_worker(kind: MessageKind) -> MessageKind:
    """The kind of such messages."""

    def rested(sent: Message, rest: Rest, latest: Mapping[str, Message]) -> Message:
        plain = changed(sent, kind=kind.name)
        own = {each.removeprefix(_PREFIX): other for each, other in latest.items() if each.startswith(_PREFIX)}
        after = kind.at_rest(plain, rest, own)
        return sent if after is plain else of_worker(after)

    return replace(kind, name=f"{_PREFIX}{kind.name}", supersedes=(), at_rest=rested)
