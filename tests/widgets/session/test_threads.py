"""Nothing stays behind: threads end with the session, whatever was going on."""

import gc
import threading
import time
from weakref import ref

import pytest

from planner import zoo
from planner.capture import capture
from planner.errors import StowageError
from tests.widgets.session.message_recorder import MessageRecorder
from widgets.messages import Message
from widgets.session import Session

MODEL = "gpt:layers=2,hidden=64,sequence=32,optimizer=adam"


def ours() -> set[threading.Thread]:
    """The threads of all sessions there are, those of other tests too."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("stowage")}


def assert_all_ended(before: set[threading.Thread]) -> None:
    until = time.monotonic() + 240
    while ours() - before and time.monotonic() < until:
        time.sleep(0.02)
    assert not ours() - before


def busy(do: str) -> Session:
    """A session in the middle of something that goes on for long."""
    # a GPU computes so much faster than the link copies that no plan meets the bound, which would end a search
    session = Session(zoo.load(MODEL), machine="cpu" if do == "run" else "laptop", budget="40%")
    recorder = MessageRecorder(session)
    assert session.plan is not None
    if do == "sweep":
        session.request({"do": "ready"})
        recorder.wait("front", lambda front: front["share"] is not None)
    elif do == "search":
        session.start_search(None)
        recorder.wait("search", lambda search: search["evaluations"] > 0)
    else:
        session.budget = "200%"
        assert session.plan is not None
        session.start_run(10**6, check=False)
        recorder.wait("run", lambda run: run["step"] > 0)
    recorder.leave()
    return session


@pytest.mark.parametrize("do", ["sweep", "search", "run"])
def test_closing_ends_what_goes_on(do: str) -> None:
    before = ours()
    session = busy(do)
    assert ours() - before
    session.close()
    assert_all_ended(before)
    session.close()


@pytest.mark.parametrize("do", ["sweep", "search", "run"])
def test_dropping_the_session_ends_what_goes_on(do: str) -> None:
    before = ours()
    session = busy(do)
    gone = ref(session)
    del session
    gc.collect()
    assert gone() is None
    assert_all_ended(before)


def test_after_closing_nothing_begins_and_nobody_waits_for_ever() -> None:
    before = ours()
    session = Session(capture(zoo.load(MODEL)), budget="60%")
    graph = session.graph
    session.close()
    assert session.graph is graph
    _ = session.plan
    for begin in (
        lambda: setattr(session, "budget", "70%"),
        lambda: setattr(session, "machine", "laptop"),
        session.start_search,
        lambda: session.start_run(10**6, check=False),
    ):
        with pytest.raises(StowageError, match="closed"):
            begin()
    _ = session.plan
    assert_all_ended(before)


@pytest.mark.parametrize("do", ["sweep", "search", "run"])
def test_a_view_of_a_closed_bench_says_so_and_waits_for_nothing(do: str) -> None:
    session = busy(do)
    session.close()
    recorder = MessageRecorder(session)
    asked = [
        {"do": "search"},
        {"do": "resume"},
        {"do": "budget", "bytes": 10**6},
        {"do": "machine", "name": "laptop"},
        {"do": "run"},
        {"do": "export", "format": "html"},
    ]
    for wanted in asked:
        mark = recorder.mark()
        session.request(wanted)
        assert [said.content["kind"] for said in recorder.messages[mark:]] == ["notice"]
        assert "closed" in recorder.last("notice")["sentence"]
    session.request({"do": "ready"})
    shown = {message.kind: message.content for message in session.messages()}
    assert {shown[kind]["state"] for kind in ("search", "run", "budget")} & {"running", "planning"} == set()
    assert shown["front"]["share"] is None


def test_what_can_be_run_is_not_begun_any_more_once_it_is_closed() -> None:
    before = ours()
    session = Session(zoo.load(MODEL), machine="cpu", budget="200%")
    assert session.plan is not None
    session.close()
    with pytest.raises(StowageError, match="closed"):
        session.start_run(10**6, check=False)
    assert_all_ended(before)


def test_closed_before_the_capture_is_done_it_says_so_to_whoever_waits() -> None:
    session = Session(zoo.load(MODEL))
    recorder = MessageRecorder(session)
    recorder.wait("loading")
    session.close()
    assert "closed before the step was captured" in recorder.last("refused")["sentence"]
    with pytest.raises(StowageError, match="closed before the step was captured"):
        _ = session.graph


def test_an_interrupted_wait_for_a_search_leaves_the_session_usable() -> None:
    session = busy("search")
    search = session.search
    assert search is not None
    search.cancel()
    search.wait()
    recorder = MessageRecorder(session)
    recorder.wait("search", lambda said: said["state"] in {"cancelled", "done"})
    mark = recorder.mark()
    session.request({"do": "resume"})
    recorder.wait("search", lambda said: said["state"] == "running", mark)


def test_a_message_sent_while_the_earlier_ones_are_repeated_is_heard_after_them() -> None:
    session = Session(capture(zoo.load(MODEL)), budget="200%")
    assert session.plan is not None
    heard: list[str] = []
    other = threading.Thread(target=session.request, args=({"do": "compare", "bytes": None},))

    def listen(message: Message) -> None:
        heard.append(message.kind)
        if not other.ident:
            other.start()

    stop = session.listen(listen, replay=True)
    other.join()
    stop()
    assert "graph" in heard
    assert heard[-1] == "compare"
    session.close()
