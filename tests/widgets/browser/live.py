"""A page with a session behind it, as a kernel would be: what it asks is answered, what the session says is drawn."""

from __future__ import annotations

import time
from collections import deque
from threading import Event
from typing import Any

from tests.widgets.browser.page import Shown
from widgets.messages.message import Message
from widgets.session import Session

#: Nothing here takes long; on a busy machine it may.
PATIENCE = 120.0


class Live:
    """What goes on between a session and a page.

    Args:
        shown: the page.
        session: it is to be closed by whoever made it.
    """

    def __init__(self, shown: Shown, session: Session) -> None:
        self.shown, self.session = shown, session
        self._said: deque[Message] = deque()
        self._news = Event()
        shown.answer_with(session.request)
        session.listen(self._hear, replay=True)
        session.request({"do": "ready"})

    def _hear(self, message: Message) -> None:
        self._said.append(message)
        self._news.set()

    def pump(self) -> None:
        """Draw what was said by now."""
        said = [self._said.popleft() for _ in range(len(self._said))]
        if said:
            self.shown.publish(said)

    def until(self, condition: str, arg: Any = None) -> None:
        """Wait until something, in the page's language, is true of the page."""
        give_up = time.monotonic() + PATIENCE
        while True:
            self.pump()
            if self.shown.page.evaluate(condition, arg):
                return
            assert time.monotonic() < give_up, f"it does not become true that {condition}"
            self._news.wait(0.05)
            self._news.clear()

    def until_text(self, selector: str, part: str) -> None:
        """Wait until an element says something."""
        self.until(
            "([selector, part]) => [...document.querySelectorAll(selector)].some(e => e.textContent.includes(part))",
            [selector, part],
        )
