"""The kinds of message: in which order they are replayed, and how each reads once nothing works on it any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from planner.errors import StowageError
from widgets.messages.message import Message

#: Why nothing works on a message any more: its session was closed, or it is saved in a page, which has no kernel.
Rest = Literal["closed", "saved"]
AtRest = Callable[[Message, Rest, Mapping[str, Message]], Message]


def _unchanged(message: Message, _: Rest, __: Mapping[str, Message]) -> Message:
    return message


@dataclass(frozen=True)
class MessageKind:
    """One kind of message.

    Args:
        name: the kind, as in `Message.kind`.
        transient: whether it is about a moment, so that it is neither kept nor replayed.
        supersedes: kinds whose latest message is out of date once there is one of this kind.
        at_rest: takes a message, why it is at rest, and the latest messages by kind; returns the message without any
            work that is still under way, which is the same message if there is none.
    """

    name: str
    transient: bool = False
    supersedes: tuple[str, ...] = ()
    at_rest: AtRest = _unchanged


_kinds: dict[str, MessageKind] = {}


def register_kinds(kinds: Iterable[MessageKind]) -> None:
    """Make kinds of message known, after the ones that are known; messages are replayed in this order.

    Raises:
        StowageError: a kind of this name is known already.
    """
    added = {kind.name: kind for kind in kinds}
    for name in added.keys() & _kinds.keys():
        raise StowageError(f"there are two message kinds {name!r}; rename one")
    _kinds.update(added)


def forget_kinds(kinds: Iterable[MessageKind]) -> None:
    """Undo `register_kinds`."""
    for kind in kinds:
        _kinds.pop(kind.name, None)


def kind_of(message: Message) -> MessageKind:
    """The kind of a message.

    Raises:
        StowageError: no feature has registered it.
    """
    kind = _kinds.get(message.kind)
    if kind is None:
        raise StowageError(f"no feature has registered messages of kind {message.kind!r}")
    return kind


def in_order(messages: Mapping[str, Message]) -> list[Message]:
    """The latest messages by kind, in the order in which their kinds were registered."""
    return [messages[name] for name in _kinds if name in messages]


def at_rest(messages: Iterable[Message], rest: Rest) -> list[Message]:
    """The latest messages of each kind, without work that is still under way.

    Args:
        messages: at most one of each kind.
        rest: why nothing works on them any more.

    Raises:
        StowageError: no feature has registered the kind of one of them.
    """
    latest = {message.kind: message for message in messages}
    return [kind_of(message).at_rest(message, rest, latest) for message in latest.values()]
