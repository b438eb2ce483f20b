"""A feature of the Workbench: what the session has to know of a tab, registered by the one file that implements it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from planner.errors import StowageError
from widgets.messages import Message, MessageKind, forget_kinds, notice_message, register_kinds
from widgets.session.state.session_state import SessionState

S = TypeVar("S")
Request = Callable[[SessionState, Mapping[str, Any]], object]


def _nothing(_: SessionState) -> None:
    """Do nothing."""


def _no_messages(_: SessionState) -> Sequence[Message]:
    return ()


@dataclass(frozen=True, eq=False)
class Feature(Generic[S]):
    """What a tab needs of a session.

    Args:
        name: the tab, or the part of the Workbench, that needs it.
        kinds: the kinds of message it sends, with how each reads at rest.
        requests: by the `do` of a request, what carries it out; it may raise a StowageError, which becomes a notice.
        jobs: the kinds of jobs that the sweep over budgets must wait for.
        first: the messages before it has done any work, sent once the step is captured.
        cancel: stops its work, and keeps what was found; called for an interrupt and when no view is left.
        close: ends its work for good, after its jobs were dropped and their messages are at rest.
        state: makes what it remembers in a session; see `of`.
    """

    name: str
    kinds: Sequence[MessageKind] = ()
    requests: Mapping[str, Request] | None = None
    jobs: Sequence[str] = ()
    first: Callable[[SessionState], Sequence[Message]] = _no_messages
    cancel: Callable[[SessionState], None] = _nothing
    close: Callable[[SessionState], None] = _nothing
    state: Callable[[], S] | None = None

    def of(self, session_state: SessionState) -> S:
        """What this feature remembers in a session; made on the first call."""
        assert self.state is not None
        with session_state.message_bus.lock:
            if self.name not in session_state.remembered:
                session_state.remembered[self.name] = self.state()
            remembered: S = session_state.remembered[self.name]
            return remembered


_features: dict[str, Feature[Any]] = {}


def register(feature: Feature[Any]) -> None:
    """Add a feature to every session.

    Raises:
        StowageError: another feature has its name, one of its message kinds or one of its requests.
    """
    taken = {do for other in _features.values() for do in other.requests or ()} & set(feature.requests or ())
    if feature.name in _features or taken:
        raise StowageError(f"there are two features {', '.join(sorted(taken)) or feature.name}; rename one")
    register_kinds(feature.kinds)
    _features[feature.name] = feature


def unregister(feature: Feature[Any]) -> None:
    """Undo `register`."""
    forget_kinds(feature.kinds)
    _features.pop(feature.name, None)


def features() -> Iterator[Feature[Any]]:
    """All features, in the order in which they were registered."""
    return iter(tuple(_features.values()))


def find_request(do: str) -> Request | None:
    """What carries out a request, or None if no feature does."""
    return next((feature.requests[do] for feature in features() if feature.requests and do in feature.requests), None)


def carry_out(session_state: SessionState, wanted: Mapping[str, Any]) -> None:
    """Carry out a panel's request; a request that cannot be carried out is answered by a notice.

    Args:
        session_state: the session state.
        wanted: `{"do": what, ...}`; a request that no feature knows is ignored.
    """
    do = find_request(str(wanted.get("do")))
    if do is None:
        return
    try:
        session_state.check_open()
        do(session_state, wanted)
    except StowageError as error:
        session_state.message_bus.publish(notice_message(str(error)))
    except (KeyError, TypeError, ValueError, OverflowError):  # a malformed request
        session_state.message_bus.publish(notice_message(f"nothing was done: {dict(wanted)!r:.200} is no request"))


def cancel_features(session_state: SessionState) -> None:
    """Stop the work of every feature, and keep what was found."""
    for feature in features():
        feature.cancel(session_state)


def close_features(session_state: SessionState) -> None:
    """End the work of every feature for good."""
    for feature in features():
        feature.close(session_state)


def foreground_jobs() -> list[str]:
    """The kinds of jobs that work in the background must wait for."""
    return [kind for feature in features() for kind in feature.jobs]
