"""Messages in order: the latest of every kind, and who is told of each new one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from threading import RLock

from widgets.canvas.columns import Message

Listener = Callable[[Message], None]

_log = logging.getLogger(__name__)

#: What comes first when everything is told again: the page needs the graph to make sense of the rest.
_ORDER = (
    "refused", "loading", "graph", "machine", "samples", "budget", "plan", "search", "front", "compare", "run",
)  # fmt: skip
#: What is of its moment and is not told again.
_PASSING = frozenset({"notice", "busy", "exported"})
#: Which kinds make others pointless.
_ENDS = {"graph": ("loading", "refused"), "refused": ("loading",)}


class Outbox:
    """Where threads report; holding `turn`, one tells several messages with none of another thread's in between.

    A listener that raises is logged: it is no fault of what it was told about, nor of those who listen beside it.
    """

    def __init__(self) -> None:
        self.turn = RLock()
        self._latest: dict[str, Message] = {}
        self._listeners: dict[int, Listener] = {}
        self._count = 0

    def tell(self, *messages: Message) -> None:
        """Tell all listeners, and remember."""
        with self.turn:
            for message in messages:
                if message.kind not in _PASSING:
                    self._latest[message.kind] = message
                for other in _ENDS.get(message.kind, ()):
                    self._latest.pop(other, None)
                for listener in tuple(self._listeners.values()):
                    try:
                        listener(message)
                    except Exception:
                        _log.exception("a listener raised when it was told of: %s", message.kind)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have a function called with every message from now on, by the thread that tells it.

        Returns:
            A function that ends that.
        """
        with self.turn:
            self._count += 1
            number = self._count
            self._listeners[number] = listener

        def stop() -> None:
            with self.turn:
                self._listeners.pop(number, None)

        return stop

    @property
    def heard(self) -> bool:
        """Whether anybody listens."""
        with self.turn:
            return bool(self._listeners)

    def replay(self, listener: Listener) -> None:
        """Tell one listener everything there is, before anything new."""
        with self.turn:
            for message in self.all():
                listener(message)

    def all(self) -> list[Message]:
        """The latest message of every kind, the graph before what refers to it."""
        with self.turn:
            return [self._latest[kind] for kind in _ORDER if kind in self._latest]

    def latest(self, kind: str) -> Message | None:
        """The latest message of a kind."""
        with self.turn:
            return self._latest.get(kind)

    def forget(self, kinds: Iterable[str]) -> None:
        """Forget the messages of some kinds, which no longer hold."""
        with self.turn:
            for kind in kinds:
                self._latest.pop(kind, None)
