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
from tests.widgets.session.message_recorder import MessageRecorder
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
def recorder() -> Iterator[MessageRecorder]:
    register(TOY)
    CLOSED.clear()
    session = Session(by_hand())
    recorder = MessageRecorder(session)
    recorder.planned()
    yield recorder
    session.close()
    unregister(TOY)


def test_its_first_message_is_sent_once_the_step_is_captured_and_replayed_after_the_graph(
    recorder: MessageRecorder,
) -> None:
    assert recorder.last("toy")["state"] == "empty"
    kinds = [each.kind for each in recorder.session.messages()]
    assert kinds.index("graph") < kinds.index("toy")


def test_its_requests_are_carried_out_and_what_it_remembers_is_of_one_session(recorder: MessageRecorder) -> None:
    recorder.session.request({"do": "toy", "times": 3})
    assert recorder.wait("toy", lambda toy: toy["state"] == "running")["times"] == 3
    assert recorder.columns("toy")["ops"].tolist() == [0, 1, 2]
    other = MessageRecorder(Session(by_hand()))
    assert other.wait("toy")["times"] == 0
    other.session.close()


def test_a_request_that_cannot_be_carried_out_is_answered_by_a_notice(recorder: MessageRecorder) -> None:
    recorder.session.request({"do": "toy"})
    assert "is no request" in recorder.wait("notice")["sentence"]


def test_a_transient_message_is_heard_and_not_replayed(recorder: MessageRecorder) -> None:
    recorder.session.request({"do": "toy", "times": 1})
    recorder.wait("toy_done")
    assert "toy_done" not in [each.kind for each in recorder.session.messages()]


def test_its_work_is_cancelled_by_its_request(recorder: MessageRecorder) -> None:
    recorder.session.request({"do": "toy", "times": 2})
    recorder.session.request({"do": "cancel_toy"})
    assert recorder.wait("toy", lambda toy: toy["state"] == "cancelled")["times"] == 2


def test_its_work_is_cancelled_when_nobody_looks_any_more(recorder: MessageRecorder) -> None:
    session = recorder.session
    session.request({"do": "toy", "times": 2})
    recorder.leave()
    session.suspend()
    assert MessageRecorder(session).wait("toy", lambda toy: toy["state"] == "cancelled")["times"] == 2


def test_closing_the_session_leaves_its_message_at_rest_and_ends_what_it_holds(recorder: MessageRecorder) -> None:
    recorder.session.request({"do": "toy", "times": 4})
    recorder.session.close()
    assert (recorder.last("toy")["state"], recorder.last("toy")["times"]) == ("closed", 4)
    assert CLOSED.is_set()
    recorder.session.request({"do": "toy", "times": 5})
    assert recorder.last("toy")["times"] == 4
    assert "closed" in recorder.last("notice")["sentence"]


def test_a_page_is_saved_with_its_message_at_rest(recorder: MessageRecorder) -> None:
    recorder.session.request({"do": "toy", "times": 4})
    packed = re.search(r'id="messages">([^<]*)<', page_text(recorder.session.messages()))
    assert packed is not None
    head = gzip.decompress(base64.b64decode(packed[1]))[4:]
    sent = json.JSONDecoder().raw_decode(head.decode("latin-1"))[0]["messages"]
    assert [content["state"] for content, _ in sent if content["kind"] == "toy"] == ["saved"]
    assert recorder.last("toy")["state"] == "running"


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (Feature[None]("toy"), "two features toy"),
        (Feature[None]("other", requests={"toy": begin}), "two features toy"),
        (Feature[None]("other", kinds=(MessageKind("toy"),)), "two message kinds 'toy'"),
        (Feature[None]("search"), "two features search"),
    ],
)
@pytest.mark.usefixtures("recorder")
def test_two_features_cannot_share_a_name_a_request_or_a_kind_of_message(other: Feature[Any], sentence: str) -> None:
    with pytest.raises(StowageError, match=sentence):
        register(other)


def test_a_message_of_a_kind_that_nobody_registered_is_refused() -> None:
    with pytest.raises(StowageError, match="no feature has registered messages of kind 'toy'"):
        page_text([graph_message(by_hand(), 1), message("toy", {})])
