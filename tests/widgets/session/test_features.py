"""A tab is a feature: what one file registers gets its messages, requests, jobs and state at rest in every session."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any

import pytest

from planner.errors import StowageError
from tests.widgets.session.hearing import Ear
from tests.widgets.steps import by_hand
from widgets.fallback import page_text
from widgets.messages import Message, MessageKind, Rest, changed, graph_message
from widgets.messages.message import message
from widgets.session import Session
from widgets.session.state.feature import Feature, register, unregister
from widgets.session.state.jobs import Job
from widgets.session.state.session_state import SessionState


@dataclass
class Counted:
    """What the toy remembers in one session."""

    times: int = 0
    closed: bool = False


def said(core: SessionState, state: str) -> Message:
    return message("toy", {"state": state, "times": TOY.of(core).times}, {"ops": ("i4", range(3))})


def begin(core: SessionState, wanted: Mapping[str, Any]) -> None:
    if core.graph is None:
        raise StowageError("there is nothing to count yet")
    TOY.of(core).times = int(wanted["times"])
    core.message_bus.publish(said(core, "running"), message("toy_done", {}))
    core.jobs.start("toy", lambda job: work(core, job))


def work(core: SessionState, job: Job) -> None:
    while not job.stop.wait(60.0):
        pass
    core.report(job, said(core, "cancelled"))


def cancel(core: SessionState) -> None:
    core.jobs.cancel("toy")


def close(core: SessionState) -> None:
    TOY.of(core).closed = True
    CLOSED.set()


def rested(sent: Message, rest: Rest, latest: Mapping[str, Message]) -> Message:
    assert "graph" in latest
    return sent if sent.content["state"] != "running" else changed(sent, state=rest)


CLOSED = Event()
TOY = Feature(
    "toy",
    kinds=(MessageKind("toy", at_rest=rested), MessageKind("toy_done", transient=True)),
    requests={"toy": begin, "cancel_toy": lambda core, _: cancel(core)},
    jobs=("toy",),
    first=lambda core: (said(core, "empty"),),
    cancel=cancel,
    close=close,
    state=Counted,
)


@pytest.fixture
def ear() -> Iterator[Ear]:
    register(TOY)
    CLOSED.clear()
    session = Session(by_hand())
    ear = Ear(session)
    ear.planned()
    yield ear
    session.close()
    unregister(TOY)


def test_its_first_message_is_sent_once_the_step_is_captured_and_replayed_after_the_graph(ear: Ear) -> None:
    assert ear.last("toy")["state"] == "empty"
    kinds = [each.kind for each in ear.session.messages()]
    assert kinds.index("graph") < kinds.index("toy")


def test_its_requests_are_carried_out_and_what_it_remembers_is_of_one_session(ear: Ear) -> None:
    ear.session.request({"do": "toy", "times": 3})
    assert ear.wait("toy", lambda toy: toy["state"] == "running")["times"] == 3
    assert ear.columns("toy")["ops"].tolist() == [0, 1, 2]
    other = Ear(Session(by_hand()))
    assert other.wait("toy")["times"] == 0
    other.session.close()


def test_a_request_that_cannot_be_carried_out_is_answered_by_a_notice(ear: Ear) -> None:
    ear.session.request({"do": "toy"})
    assert "is no request" in ear.wait("notice")["sentence"]


def test_a_transient_message_is_heard_and_not_replayed(ear: Ear) -> None:
    ear.session.request({"do": "toy", "times": 1})
    ear.wait("toy_done")
    assert "toy_done" not in [each.kind for each in ear.session.messages()]


def test_its_work_is_cancelled_by_its_request(ear: Ear) -> None:
    ear.session.request({"do": "toy", "times": 2})
    ear.session.request({"do": "cancel_toy"})
    assert ear.wait("toy", lambda toy: toy["state"] == "cancelled")["times"] == 2


def test_its_work_is_cancelled_when_nobody_looks_any_more(ear: Ear) -> None:
    session = ear.session
    session.request({"do": "toy", "times": 2})
    ear.leave()
    session.suspend()
    assert Ear(session).wait("toy", lambda toy: toy["state"] == "cancelled")["times"] == 2


def test_closing_the_session_leaves_its_message_at_rest_and_ends_what_it_holds(ear: Ear) -> None:
    ear.session.request({"do": "toy", "times": 4})
    ear.session.close()
    assert (ear.last("toy")["state"], ear.last("toy")["times"]) == ("closed", 4)
    assert CLOSED.is_set()
    ear.session.request({"do": "toy", "times": 5})
    assert ear.last("toy")["times"] == 4
    assert "closed" in ear.last("notice")["sentence"]


def test_a_page_is_saved_with_its_message_at_rest(ear: Ear) -> None:
    ear.session.request({"do": "toy", "times": 4})
    packed = re.search(r'id="messages">([^<]*)<', page_text(ear.session.messages()))
    assert packed is not None
    head = gzip.decompress(base64.b64decode(packed[1]))[4:]
    sent = json.JSONDecoder().raw_decode(head.decode("latin-1"))[0]["messages"]
    assert [content["state"] for content, _ in sent if content["kind"] == "toy"] == ["saved"]
    assert ear.last("toy")["state"] == "running"


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (Feature[None]("toy"), "two features toy"),
        (Feature[None]("other", requests={"toy": begin}), "two features toy"),
        (Feature[None]("other", kinds=(MessageKind("toy"),)), "two message kinds 'toy'"),
        (Feature[None]("search"), "two features search"),
    ],
)
@pytest.mark.usefixtures("ear")
def test_two_features_cannot_share_a_name_a_request_or_a_kind_of_message(other: Feature[Any], sentence: str) -> None:
    with pytest.raises(StowageError, match=sentence):
        register(other)


def test_a_message_of_a_kind_that_nobody_registered_is_refused() -> None:
    with pytest.raises(StowageError, match="no feature has registered messages of kind 'toy'"):
        page_text([graph_message(by_hand(), 1), message("toy", {})])
