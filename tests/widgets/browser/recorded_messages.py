"""The messages of real sessions, kept to be sent to pages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner import zoo
from tests.widgets.session.message_recorder import MessageRecorder
from widgets.messages.message import Message, unpack
from widgets.session import Session

SMALL = "mlp:layers=3,optimizer=adam"
DEEP = "gpt:layers=3,hidden=64,sequence=32,optimizer=adam"


@dataclass(frozen=True)
class RecordedMessages:
    """The latest message of every kind, of a session and maybe of others."""

    messages: tuple[Message, ...]

    def __getitem__(self, kind: str) -> dict[str, Any]:
        return self._of(kind).content

    def columns(self, kind: str) -> dict[str, NDArray[Any]]:
        return unpack(self._of(kind))

    def _of(self, kind: str) -> Message:
        return next(message for message in self.messages if message.kind == kind)

    def but(self, *others: Message) -> RecordedMessages:
        """The same with some messages in place of those of their kind."""
        new = {message.kind: message for message in others}
        kept = [new.pop(message.kind, message) for message in self.messages]
        return RecordedMessages((*kept, *new.values()))

    def having(self, kind: str, /, **changed: Any) -> RecordedMessages:
        """The same with some fields of a message changed."""
        old = self._of(kind)
        return self.but(Message({**old.content, **changed}, old.buffers))

    def curve(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """When the bytes on the device change, `[times]`, and how many of each kind there are then, `[times, 6]`."""
        graph, plan = self.columns("graph"), self.columns("plan")
        kind, size = graph["storage_kind"][plan["residency_storage"]], graph["storage_bytes"][plan["residency_storage"]]
        times = np.unique(np.concatenate([plan["residency_start"], plan["residency_stop"]]))
        there = (plan["residency_start"] <= times[:, None]) & (plan["residency_stop"] > times[:, None])
        return times, np.stack([(there & (kind == one)) @ size for one in range(6)], axis=1)


@cache
def trained() -> RecordedMessages:
    """A small model within 45 % of what it needs: searched, looked at for other budgets, and run for two steps."""
    session = Session(zoo.load(SMALL), machine="cpu", budget="45%")
    recorder = MessageRecorder(session)
    recorder.planned()
    session.request({"do": "ready"})
    recorder.wait("front", lambda front: front["share"] is None and len(front["points"]) > 3)
    session.start_search(1.0)
    recorder.wait("search", lambda search: search["state"] in {"paused", "done"})
    session.start_run(2)
    recorder.wait("run", lambda run: run["state"] in {"done", "failed"})
    recorded = RecordedMessages(tuple(session.messages()))
    session.close()
    return recorded


@cache
def planned(spec: str = DEEP, budget: str | int = "40%") -> RecordedMessages:
    """A model with the first plan for a budget, on a GPU whose link is slow for it; nothing else was asked for yet."""
    session = Session(zoo.load(spec), machine="v100-16gb", budget=budget)
    recorder = MessageRecorder(session)
    recorder.planned()
    recorder.wait("plan")  # that nothing fits is said before what is drawn instead
    recorded = RecordedMessages(tuple(session.messages()))
    session.close()
    return recorded


_SIZES = {
    "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "s": 1, "ms": 1e-3, "µs": 1e-6, "%": 0.01, "": 1,
}  # fmt: skip
_AMOUNT = re.compile(r"(\d[\d,]*(?:\.\d+)?)(?:[ \u202f](B|KiB|MiB|GiB|s|ms|µs|%)(?![\w/]))?")


def says(text: str, exact: float) -> bool:
    """Whether a text has a number that is `exact` as far as its digits go."""
    for number, unit in _AMOUNT.findall(text):
        plain = number.replace(",", "")
        digits = len(plain.partition(".")[2])
        if abs(float(plain) * _SIZES[unit] - exact) <= 0.5000001 * 10**-digits * _SIZES[unit] * (1 + 1e-9):
            return True
    return False
