"""From a step to the first picture: what is said while it is captured, and what if it cannot be."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

import pytest
import torch
from torch import nn

from planner import zoo
from planner.capture import capture
from planner.errors import StowageError
from planner.profile import machine
from planner.step import TrainStep
from planner.swap import plan_swaps
from tests.widgets.session.message_recorder import MessageRecorder
from widgets.session import Session

SMALL = "mlp:layers=3,optimizer=adam"


class Waiting:
    """Makes a model, but not before it is allowed to."""

    def __init__(self) -> None:
        self.allowed = Event()

    def __call__(self) -> nn.Module:
        self.allowed.wait()
        return nn.Linear(4, 2)

    @contextmanager
    def session(self) -> Iterator[Session]:
        step = TrainStep(self, lambda: torch.ones(3, 4), loss=lambda model, x: model(x).sum(), name="waits")
        try:
            yield Session(step)
        finally:
            self.allowed.set()


class Undecided(nn.Module):
    """What it computes depends on what training makes of its weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight if self.weight.sum() > 0 else x - self.weight


def test_first_of_all_comes_the_graph_then_the_machine_the_budget_and_a_plan() -> None:
    recorder = MessageRecorder(Session(zoo.load(SMALL)))
    recorder.planned()
    kinds = [kind for kind in dict.fromkeys(recorder.kinds()) if kind != "loading"]
    assert kinds == ["graph", "machine", "samples", "front", "compare", "run", "budget", "search", "plan", "plans"]


def test_while_there_is_no_graph_it_says_what_it_is_doing_and_for_how_long() -> None:
    with (waiting := Waiting()).session() as session:
        recorder = MessageRecorder(session)
        first = recorder.wait("loading")
        later = recorder.wait("loading", lambda loading: loading["seconds"] > first["seconds"])
        assert {message.kind for message in session.messages()} == {"loading"}
        assert (later["name"], later["doing"]) == ("waits", "building the model")
        waiting.allowed.set()
        recorder.wait("graph")
    assert "loading" not in {message.kind for message in session.messages()}


def test_a_capture_that_is_cancelled_says_so_at_once_and_no_graph_comes_of_it() -> None:
    with (waiting := Waiting()).session() as session:
        recorder = MessageRecorder(session)
        recorder.wait("loading")
        session.request({"do": "cancel_loading"})
        assert recorder.last("refused")["title"] == "Capture cancelled"
        waiting.allowed.set()
        with pytest.raises(StowageError, match="run the cell again"):
            _ = session.graph
    assert "graph" not in recorder.kinds()


class Endless(nn.Module):
    """Is never done."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while True:
            x = self.layer(x)


def test_a_step_without_end_says_how_far_it_is_and_ends_when_it_is_cancelled() -> None:
    model = Endless()
    session = Session(TrainStep(model, torch.ones(3, 4), loss=lambda model, x: model(x).sum()))
    recorder = MessageRecorder(session)
    recorder.wait("loading", lambda loading: loading["doing"].endswith(" ops"))
    session.request({"do": "cancel_loading"})
    assert recorder.last("refused")["title"] == "Capture cancelled"
    while any(thread.name.startswith("stowage") for thread in threading.enumerate()):
        time.sleep(0.01)
    assert type(model.layer.weight) is nn.Parameter
    assert model.layer(torch.ones(4)).shape == (4,)


def test_a_step_that_cannot_be_captured_is_refused_with_the_sentence_that_the_capture_has() -> None:
    def step() -> TrainStep:
        return TrainStep(Undecided(), torch.ones(3), loss=lambda model, x: model(x).sum())

    with pytest.raises(StowageError) as alone:
        capture(step())
    session = Session(step())
    refused = MessageRecorder(session).wait("refused")
    assert refused["title"] == "This step cannot be captured"
    assert refused["sentence"] == str(alone.value)
    with pytest.raises(StowageError) as told:
        _ = session.graph
    assert str(told.value) == refused["sentence"]
    session.request({"do": "search"})
    session.request({"do": "budget", "bytes": 100})
    assert session.messages()[0].kind == "refused"


def test_a_model_that_cannot_even_be_made_is_refused_too() -> None:
    def broken() -> nn.Module:
        raise ZeroDivisionError("no layers")

    refused = MessageRecorder(Session(TrainStep(broken, torch.ones(3)))).wait("refused")
    assert "no layers" in refused["sentence"]


def test_without_a_budget_it_plans_for_the_machine_where_the_step_needs_more_and_else_for_the_step() -> None:
    graph = capture(zoo.load(SMALL))
    peak = Session(graph).budget
    recorder = MessageRecorder(Session(graph))
    recorder.planned()
    assert (peak, recorder.last("budget")["verdict"]) == (recorder.last("machine")["step_peak_bytes"], "fits")
    assert Session(graph, budget="50%").budget == peak // 2


def test_a_plan_is_drawn_as_it_is_with_its_own_op_times() -> None:
    graph, here = capture(zoo.load(SMALL)), machine("v100-16gb")
    plan = plan_swaps(graph, here, "50%", method="on-demand", seconds=[1e-3] * len(graph.ops))
    session = Session((graph, plan))
    drawn = session.plan
    assert drawn is not None
    assert (drawn.residencies, session.budget, session.machine) == (plan.residencies, plan.budget_bytes, here)
    assert MessageRecorder(session).last("machine")["ideal_seconds"] == pytest.approx(1e-3 * len(graph.ops))


def test_a_plan_for_another_graph_is_refused() -> None:
    other = plan_swaps(capture(zoo.load("mlp:layers=2")), machine("v100-16gb"), "100%", method="on-demand")
    refused = MessageRecorder(Session((capture(zoo.load(SMALL)), other))).wait("refused")
    assert "not for mlp:layers=3" in refused["sentence"]


@pytest.mark.parametrize(
    ("given", "options", "sentence"),
    [
        ("resnet", {}, "a str cannot be shown: give a TrainStep"),
        (None, {"machine": "v100"}, "unknown machine 'v100'"),
        (None, {"budget": "8 GX"}, "is not a unit of memory"),
        (None, {"budget": 0}, "leaves no memory"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_begins(given: object, options: dict, sentence: str) -> None:
    with pytest.raises(StowageError, match=sentence):
        Session(zoo.load(SMALL) if given is None else given, **options)


def test_a_plan_without_its_graph_says_what_to_give() -> None:
    plan = plan_swaps(capture(zoo.load(SMALL)), machine("v100-16gb"), "100%", method="on-demand")
    with pytest.raises(StowageError, match=r"give the pair \(graph, plan\)"):
        Session(plan)
