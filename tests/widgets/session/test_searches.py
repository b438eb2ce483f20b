"""A search as one watches it: progress, better plans, cancel, resume, and the end of it."""

import time
from typing import Any

import pytest

from planner import zoo
from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph
from planner.profile import machine
from planner.swap import search_swaps
from tests.widgets.session.message_recorder import MessageRecorder
from widgets.messages.message import Message
from widgets.session import Session


@pytest.fixture(scope="module")
def graph() -> Graph:
    return capture(zoo.load("gpt:layers=2,hidden=64,sequence=32,optimizer=adam"))


@pytest.fixture
def session(graph: Graph) -> Session:
    session = Session(graph, budget="30%", seed=3)
    assert session.plan is not None
    return session


def test_a_search_is_begun_before_the_request_returns_and_draws_only_better_plans(session: Session) -> None:
    recorder = MessageRecorder(session)
    first, mark = session.plan, recorder.mark()
    assert first is not None
    session.request({"do": "search"})
    assert recorder.last("search")["state"] == "running"
    recorder.wait("plan", since=mark)
    session.request({"do": "cancel"})
    recorder.wait("search", lambda search: search["state"] in {"cancelled", "done"} and search["evaluations"] > 0, mark)
    seconds = [plan["step_seconds"] for plan in recorder.all("plan")]
    assert seconds == sorted(set(seconds), reverse=True)
    assert seconds[-1] < first.predicted.seconds
    assert session.plan is not None
    assert session.plan.predicted.seconds == seconds[-1]
    search = recorder.last("search")
    assert search["seed"] == 3
    assert [point[2] for point in search["history"]] == sorted((point[2] for point in search["history"]), reverse=True)
    assert search["bound_seconds"] <= seconds[-1]


def test_what_is_begun_can_be_held_at_once(session: Session) -> None:
    assert session.search is None
    session.start_search()
    search = session.search
    assert search is not None
    session.request({"do": "cancel"})


def test_cancelled_it_says_so_before_the_request_returns_and_keeps_what_it_found(session: Session) -> None:
    recorder = MessageRecorder(session)
    session.request({"do": "search"})
    recorder.wait("search", lambda search: search["evaluations"] > 20)
    session.request({"do": "cancel"})
    assert recorder.last("search")["state"] == "cancelled"
    search = session.search
    assert search is not None
    search.wait()
    assert session.plan is not None
    assert "resume" in recorder.last("search")["sentence"]


def test_cancelled_the_moment_it_is_said_to_run_it_ends(session: Session) -> None:
    def cancel(message: Message) -> None:
        if message.kind == "search" and message.content["state"] == "running":
            leave()
            session.request({"do": "cancel"})

    recorder, leave = MessageRecorder(session), session.listen(cancel)
    session.start_search(None)
    recorder.wait("search", lambda search: search["state"] == "cancelled")
    assert recorder.last("search")["state"] == "cancelled"


def test_it_goes_on_from_where_it_was_cancelled(session: Session) -> None:
    recorder = MessageRecorder(session)
    session.request({"do": "search"})
    recorder.wait("search", lambda search: search["evaluations"] > 20)
    session.request({"do": "cancel"})
    search = session.search
    assert search is not None
    search.wait()
    before, mark = search.progress.evaluations, recorder.mark()
    session.request({"do": "resume"})
    assert recorder.last("search")["state"] == "running"
    assert session.search is search
    recorder.wait("search", lambda said: said["evaluations"] > before, mark)
    session.request({"do": "cancel"})
    assert recorder.last("search")["seconds"] > 0


def test_cancelled_before_its_first_plan_it_says_what_to_do(graph: Graph) -> None:
    session = Session(graph, budget="30%")
    assert session.graph is graph
    recorder = MessageRecorder(session)
    session.request({"do": "search"})
    session.request({"do": "cancel"})
    assert recorder.last("search")["state"] == "cancelled"
    assert recorder.last("search")["sentence"].startswith("The search was stopped before it had any plan: resume it")
    mark = recorder.mark()
    session.request({"do": "resume"})
    recorder.wait("plan", lambda plan: not plan["placeholder"], mark)
    recorder.wait("budget", lambda budget: budget["state"] == "planned", mark)


def test_another_budget_cancels_it_and_nothing_of_it_is_told_later(session: Session) -> None:
    recorder = MessageRecorder(session)
    session.request({"do": "search"})
    recorder.wait("search", lambda search: search["evaluations"] > 20)
    search = session.search
    assert search is not None
    mark = recorder.mark()
    session.budget = "60%"
    recorder.planned(mark)
    search.wait(240)
    assert search.progress.state != "running"
    assert session.search is None
    assert "running" not in [
        message.content["state"] for message in recorder.messages[mark:] if message.kind == "search"
    ]
    budgets = {
        message.content["budget_bytes"] for message in recorder.messages[mark:] if message.kind in {"plan", "budget"}
    }
    assert budgets == {session.budget}


def test_asked_for_twice_it_is_one_search(session: Session) -> None:
    recorder = MessageRecorder(session)
    session.request({"do": "search"})
    recorder.wait("search", lambda search: search["evaluations"] > 0)
    search = session.search
    session.request({"do": "search"})
    assert session.search is search


@pytest.mark.parametrize("ended", ["its time is up", "it was cancelled", "it was cancelled in the page"])
def test_asked_for_again_a_search_goes_on_from_where_it_stopped(session: Session, ended: str) -> None:
    session.start_search(0.2 if ended == "its time is up" else None, "swap")
    search = session.search
    assert search is not None
    while search.best is None:
        time.sleep(0.01)
    if ended == "it was cancelled":
        search.cancel()
    elif ended == "it was cancelled in the page":
        session.request({"do": "cancel"})
    best, before = search.wait(progress=False), search.progress.evaluations
    session.start_search(None, "swap")  # at once, before the page has been sent how it ended
    assert session.search is search
    while search.progress.evaluations <= before:
        assert search.progress.state == "running"
        time.sleep(0.01)
    search.cancel()
    assert search.wait(progress=False).predicted.seconds <= best.predicted.seconds
    assert [row.plan for row in session.plans if row.search == "swap"] == [search.best]


def test_asked_for_in_the_page_a_search_that_is_there_goes_on(session: Session) -> None:
    session.start_search(0.2, "swap")
    search = session.search
    assert search is not None
    search.wait(progress=False)
    session.request({"do": "search"})
    assert session.search is search
    assert search.progress.state == "running"
    session.request({"do": "cancel"})


def test_a_search_that_is_asked_for_while_the_machine_changes_is_one_for_the_new_machine(session: Session) -> None:
    session.machine = "k80x8"
    session.start_search(None, "swap")
    search = session.search
    assert search is not None
    while search.best is None:
        time.sleep(0.01)
    assert search.best.machine == "k80x8"
    assert session.search is search
    session.request({"do": "cancel"})


def test_where_nothing_is_to_be_found_it_says_why(graph: Graph) -> None:
    session = Session(graph, budget="100%")
    recorder = MessageRecorder(session)
    recorder.planned()
    session.request({"do": "search"})
    assert "the step fits" in recorder.last("notice")["sentence"]
    assert session.search is None


def test_a_search_ends_by_itself_when_the_bound_is_met_or_its_time_is_up(graph: Graph) -> None:
    session = Session(graph, budget="30%")
    session.start_search(0.2)
    recorder = MessageRecorder(session)
    ended = recorder.wait("search", lambda search: search["state"] in {"paused", "done"})
    assert ended["sentence"].startswith(("The time is up", "Nothing is left", "No plan can be faster"))
    assert session.plan is not None


def test_another_method_takes_over_from_a_search_that_goes_on(session: Session) -> None:
    recorder = MessageRecorder(session)
    session.request({"do": "method", "method": "swap"})
    session.request({"do": "search"})
    recorder.wait("search", lambda search: search["evaluations"] > 20)
    swapping, mark = session.search, recorder.mark()
    session.request({"do": "method", "method": "joint"})
    recorder.wait("search", lambda search: search["state"] == "running" and search["method"] == "joint", mark)
    joint = session.search
    assert joint is not swapping
    session.request({"do": "method", "method": "swap"})
    assert session.search is swapping, "it goes on where it was"
    session.request({"do": "cancel"})
    assert {message["method"] for message in recorder.all("search")} == {"auto", "swap", "joint"}


def test_the_best_plan_of_a_search_that_another_takes_over_from_is_drawn(session: Session) -> None:
    recorder = MessageRecorder(session)
    session.start_search(None, "joint")
    search = session.search
    assert search is not None
    while search.best is None or search.progress.evaluations < 20:
        time.sleep(0.01)
    session.start_search(None, "calendar")
    best = search.best
    recorder.wait("plan", lambda plan: plan["step_seconds"] <= best.predicted.seconds)
    session.request({"do": "cancel"})
    session.request({"do": "method", "method": "joint"})
    assert session.plan is not None
    assert session.plan.predicted.seconds <= best.predicted.seconds


@pytest.mark.parametrize("asked", [(-1, "swap"), ("5", "swap"), (float("nan"), None), (5, ["swap"])])
def test_what_cannot_be_asked_stops_nothing(session: Session, asked: Any) -> None:
    session.start_search(None, "swap")
    search = session.search
    with pytest.raises(StowageError, match=r"must be 0 or more|is not a search method"):
        session.start_search(*asked)
    assert session.search is search
    session.request({"do": "cancel"})


def test_a_method_that_is_none_is_told_in_one_line_and_the_search_goes_on(session: Session) -> None:
    recorder = MessageRecorder(session)
    session.request({"do": "search"})
    session.request({"do": "method", "method": "swop"})
    assert "did you mean swap" in recorder.last("notice")["sentence"]
    assert recorder.last("search")["method"] == "auto"
    session.request({"do": "cancel"})


def test_the_bound_that_is_told_holds_for_what_the_method_may_find(graph: Graph) -> None:
    session = Session(graph, machine=machine("v100-16gb", host_link="1GB/s"), budget="30%")
    assert session.plan is not None
    recorder, bounds = MessageRecorder(session), {}
    for method in ("auto", "swap", "joint"):
        session.request({"do": "method", "method": method})
        bounds[method] = recorder.last("search")["bound_seconds"]
    assert bounds["auto"] == bounds["joint"] < bounds["swap"]
    for method, bound in bounds.items():
        search = search_swaps(session.graph, session.machine, session.budget, method=method, evaluations=1)
        search.wait()
        assert search.progress.bound_seconds == pytest.approx(bound)


def test_recomputing_alone_that_finds_no_plan_says_what_to_do_and_keeps_the_plan(graph: Graph) -> None:
    session = Session(graph, budget="30%")
    recorder = MessageRecorder(session)
    recorder.planned()
    session.budget = recorder.last("machine")["least_bytes"]
    plan = session.plan
    session.start_search(None, "recompute")
    ended = recorder.wait("search", lambda search: search["state"] == "done")
    assert 'take the method "auto"' in ended["sentence"]
    assert session.plan is plan is not None
