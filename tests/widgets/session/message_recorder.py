"""All messages of a session in order, and waiting for one."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition
from typing import Any

from widgets.messages.message import Message, unpack
from widgets.session import Session

#: Seconds. Nothing here takes long, but on a busy machine even the first capture of a process may take a minute.
PATIENCE = 120.0


class MessageRecorder:
    """Everything a session says from now on, and what it said before."""

    def __init__(self, session: Session) -> None:
        self.session = session  # which ends when nobody holds it
        self.messages: list[Message] = []
        self._new = Condition()
        self._stop = session.listen(self._record, replay=True)

    def _record(self, message: Message) -> None:
        with self._new:
            self.messages.append(message)
            self._new.notify_all()

    def leave(self) -> None:
        """Record nothing more, and let the session go."""
        self._stop()
        del self.session

    def kinds(self) -> list[str]:
        return [message.kind for message in self.messages]

    def all(self, kind: str) -> list[dict[str, Any]]:
        return [message.content for message in self.messages if message.kind == kind]

    def last(self, kind: str) -> dict[str, Any]:
        return self.all(kind)[-1]

    def columns(self, kind: str) -> dict[str, Any]:
        return unpack([message for message in self.messages if message.kind == kind][-1])

    def mark(self) -> int:
        """Now, for `wait`."""
        return len(self.messages)

    def wait(
        self, kind: str, when: Callable[[dict[str, Any]], bool] = lambda _: True, since: int = 0
    ) -> dict[str, Any]:
        """The first message of a kind since a mark for which something holds."""

        def found() -> Message | None:
            return next((one for one in self.messages[since:] if one.kind == kind and when(one.content)), None)

        with self._new:
            found_one = self._new.wait_for(found, PATIENCE)
        assert found_one is not None, (
            f"no such {kind}; recorded {[m.content for m in self.messages[since:] if m.kind == kind][-3:]}"
        )
        return found_one.content

    def planned(self, since: int = 0) -> dict[str, Any]:
        return self.wait("budget", lambda budget: budget["state"] != "planning", since)
