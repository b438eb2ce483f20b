"""An ordered message bus: it keeps the latest message of every kind and sends each new one to all listeners."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from threading import RLock

from widgets.messages import Message, in_order, kind_of

Listener = Callable[[Message], None]

_log = logging.getLogger(__name__)


class MessageBus:
    """The bus on which threads report; a thread that holds `lock` sends several messages without interleaving.

    An exception in a listener is logged, so that it affects neither the sender nor other listeners.

    Args:
        lock: that of another bus, where one bus passes on what the other sends; by default one of its own.
    """

    def __init__(self, lock: RLock | None = None) -> None:
        self.lock = RLock() if lock is None else lock
        self._latest: dict[str, Message] = {}
        self._listeners: dict[int, Listener] = {}
        self._count = 0

    def publish(self, *messages: Message) -> None:
        """Send messages to all listeners and keep the latest of each kind."""
        with self.lock:
            for message in messages:
                kind = kind_of(message)
                if not kind.transient:
                    self._latest[message.kind] = message
                for other in kind.supersedes:
                    self._latest.pop(other, None)
                for listener in tuple(self._listeners.values()):
                    try:
                        listener(message)
                    except Exception:
                        _log.exception("a listener raised when it was told of: %s", message.kind)

    def listen(self, listener: Listener, *, replay: bool = False) -> Callable[[], None]:
        """Call a function with every new message, in the thread that sends it.

        Args:
            listener: takes a message.
            replay: call it with the latest message of every kind first; no message is missed between the two.

        Returns:
            A function that removes the listener.
        """
        with self.lock:
            if replay:
                self.replay(listener)
            self._count += 1
            number = self._count
            self._listeners[number] = listener

        def stop() -> None:
            with self.lock:
                self._listeners.pop(number, None)

        return stop

    @property
    def has_listeners(self) -> bool:
        """Whether there are any listeners."""
        with self.lock:
            return bool(self._listeners)

    def replay(self, listener: Listener) -> None:
        """Send the latest message of every kind to one listener, before any new message."""
        with self.lock:
            for message in self.all():
                listener(message)

    def all(self) -> list[Message]:
        """The latest message of every kind, the graph before the messages that refer to it."""
        with self.lock:
            return in_order(self._latest)

    def latest(self, kind: str) -> Message | None:
        """The latest message of a kind."""
        with self.lock:
            return self._latest.get(kind)

    def forget(self, kinds: Iterable[str]) -> None:
        """Discard the messages of some kinds because they are out of date."""
        with self.lock:
            for kind in kinds:
                self._latest.pop(kind, None)
