"""What others do wrong: listeners that raise, requests that are none, models that leave, changes in a bad moment."""

import logging
from contextlib import nullcontext
from threading import Event
from typing import Any, NoReturn

import pytest
import torch
from torch import nn

from planner import zoo
from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph
from planner.machine.machine_types import Machine
from planner.profile import machine
from planner.step import TrainStep
from tests.widgets.session.message_recorder import MessageRecorder
from widgets import SearchPanel
from widgets.session import Session

SMALL = "mlp:layers=3,optimizer=adam"


@pytest.fixture(scope="module")
def graph() -> Graph:
    return capture(zoo.load("gpt:layers=2,hidden=64,sequence=32,optimizer=adam"))


def test_a_listener_that_raises_is_logged_and_nobody_else_notices(caplog: pytest.LogCaptureFixture) -> None:
    def deaf(_: object) -> NoReturn:
        raise ValueError("cannot hear")

    session = Session(zoo.load(SMALL), machine="cpu", budget="60%")
    session.listen(deaf)
    recorder = MessageRecorder(session)
    with caplog.at_level(logging.ERROR):
        session.budget = "150%"
        assert session.plan is not None
        session.start_run(1, check=False)
        assert recorder.wait("run", lambda run: run["state"] in {"done", "failed"})["state"] == "done"
    assert "cannot hear" in caplog.text


@pytest.mark.parametrize(
    "wanted",
    [
        {"do": "budget"},
        {"do": "budget", "bytes": None},
        {"do": "take", "bytes": "much"},
        {"do": "budget", "bytes": float("nan")},
        {"do": "budget", "bytes": float("inf")},
        {"do": "compare"},
        {"do": "compare", "bytes": []},
        {"do": "machine"},
        {"do": "run", "steps": "all"},
    ],
)
def test_a_request_that_is_none_is_told_in_one_line_and_changes_nothing(graph: Graph, wanted: dict[str, Any]) -> None:
    session = Session(graph, budget="60%")
    recorder, plan = MessageRecorder(session), session.plan
    recorder.planned()
    mark = recorder.mark()
    session.request(wanted)
    assert "is no request" in recorder.wait("notice", since=mark)["sentence"]
    assert session.plan is plan


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_model_that_leaves_the_program_is_refused_and_nobody_waits_for_it(error: type[BaseException]) -> None:
    class Leaving(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise error

    session = Session(TrainStep(Leaving(4, 2), torch.ones(3, 4), loss=lambda model, x: model(x).sum()))
    assert error.__name__ in MessageRecorder(session).wait("refused")["sentence"]
    with pytest.raises(StowageError, match=error.__name__):
        _ = session.graph


def test_an_error_that_cannot_be_put_into_words_is_named() -> None:
    class SilentError(Exception):
        def __str__(self) -> NoReturn:
            raise ValueError

    def model() -> NoReturn:
        raise SilentError

    assert MessageRecorder(Session(TrainStep(model, torch.ones(3)))).wait("refused")["sentence"]


def test_a_share_of_the_step_that_leaves_no_byte_is_refused_where_the_step_is_known() -> None:
    session = Session(zoo.load(SMALL), budget="0.0000001%")
    refused = MessageRecorder(session).wait("refused")
    assert refused["title"] == "This step cannot be planned"
    assert "leaves no memory" in refused["sentence"]
    with pytest.raises(StowageError, match="leaves no memory"):
        _ = session.budget


@pytest.mark.parametrize("wanted", [None, [], "ready", 3])
def test_what_the_page_cannot_have_asked_is_not_heeded(graph: Graph, wanted: Any) -> None:
    panel = SearchPanel(graph)
    before = panel.session.graph
    panel.handle_request(wanted)
    assert panel.session.graph is before
    panel.close()


@pytest.mark.parametrize("given", [3, [], object()])
def test_what_is_no_machine_is_refused_at_once(graph: Graph, given: Any) -> None:
    with pytest.raises(StowageError, match="is no machine"):
        Session(graph, machine=given)
    session = Session(graph, budget="60%")
    with pytest.raises(StowageError, match="is no machine"):
        session.machine = given
    assert session.plan is not None


class Slow(Machine):
    """A machine whose link takes a while to be known."""

    known = Event()

    def __getattribute__(self, name: str) -> Any:
        if name == "host_link":
            Slow.known.wait()
        return super().__getattribute__(name)


def test_a_search_begun_in_the_page_while_another_machine_is_looked_at_ends_and_its_plans_are_not_for_that_one(
    graph: Graph,
) -> None:
    session = Session(graph, machine="v100-16gb", budget="40%")
    recorder = MessageRecorder(session)
    recorder.planned()
    laptop = machine("laptop")
    session.machine = Slow("slow", laptop.devices, laptop.host_link, laptop.host_memory_bytes)
    session.request({"do": "search"})
    recorder.wait("search", lambda search: search["evaluations"] > 0)
    search = session.search
    assert search is not None
    mark = recorder.mark()
    Slow.known.set()
    recorder.wait("machine", lambda said: said["name"] == "slow", mark)
    recorder.planned(mark)
    assert session.search is None
    plan = session.plan
    assert plan is not None
    assert plan.machine == session.machine.name == "slow"
    with pytest.raises(StowageError, match="cancelled") if search.best is None else nullcontext():
        assert search.wait().machine == "v100-16gb"
    assert search.progress.state == "cancelled"


def test_a_plan_for_this_computer_that_does_not_hold_here_is_made_again_and_drawn_too() -> None:
    step = zoo.load("gpt:layers=2,hidden=64,sequence=32,optimizer=adam")  # attention takes temporary memory on a CPU
    session = Session(step, machine="cpu", budget="79%")
    recorder = MessageRecorder(session)
    assert session.plan is not None
    session.start_run(1)
    run = recorder.wait("run", lambda run: run["state"] in {"done", "failed"})
    assert (run["state"], run["mismatched"]) == ("done", 0)
    assert run["note"].startswith("Planned anew for this CPU, and drawn, within the same budget: ")
    assert session.run is not None
    assert session.plan is session.run.plan
    mark = recorder.mark()
    session.start_run(1)  # the plan that was drawn is the one that runs, and now it does
    run = recorder.wait("run", lambda run: run["state"] in {"done", "failed"}, mark)
    assert (run["state"], run["mismatched"], run["note"]) == ("done", 0, "")


@pytest.mark.parametrize("name", ["cpu", "v100-16gb"])
def test_a_model_that_is_another_one_by_now_is_not_run_by_any_plan(name: str) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    session = Session(TrainStep(model, torch.ones(4, 8), loss=lambda model, x: model(x).sum()), machine=name)
    recorder = MessageRecorder(session)
    assert session.plan is not None
    model.append(nn.Linear(8, 8))
    session.start_run(1)
    run = recorder.wait("run", lambda run: run["state"] in {"done", "failed"})
    assert run["state"] == "failed"
    assert "its graph is another one since 2.weight is new" in run["sentence"]
