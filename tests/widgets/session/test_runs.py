"""A run as one watches it: measured beside predicted, bits, a cancel, and a step that fails."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import planner
from planner import zoo
from planner.capture import capture
from planner.errors import StowageError
from planner.run import Run
from planner.run.prepare.available_memory import free_bytes
from planner.step import TrainStep
from tests.widgets.session.message_recorder import MessageRecorder
from widgets.messages.message import Message
from widgets.session import Session

OVER = {"done", "failed", "refused", "cancelled"}


def over(run: dict[str, Any]) -> bool:
    return run["state"] in OVER


def test_a_run_shows_what_was_predicted_and_what_is_measured_and_whether_the_bits_agree() -> None:
    session = Session(zoo.load("mlp:layers=6,optimizer=adam"), machine="cpu", budget="150%")
    plan = session.plan
    assert plan is not None
    recorder = MessageRecorder(session)
    session.request({"do": "run", "steps": 2, "check": True})
    assert recorder.last("run")["state"] in {"planning", "running"}
    run = recorder.wait("run", over)
    assert (run["state"], run["step"], run["steps"]) == ("done", 2, 2)
    assert len(run["losses"]) == len(run["step_seconds"]) == len(run["eager_step_seconds"]) == 2
    assert run["losses"][1] < run["losses"][0]
    assert (run["mismatched"], run["predicted_step_seconds"]) == (0, plan.predicted.seconds)
    assert run["compared"] > 50
    assert run["checked"] == "every step"
    assert run["sentence"].endswith("compared with eager PyTorch, 0 bits differ.")
    assert run["peak_bytes"] <= run["budget_bytes"]
    assert run["peak_bytes"] - run["predicted_peak_bytes"] == sum(size for _, size in run["differences"])
    columns = recorder.columns("run")
    assert columns["predicted_bytes"].tolist() == plan.predicted.sample_bytes.tolist()
    assert columns["step_start"].tolist() == pytest.approx([0, run["step_seconds"][0]], rel=1e-5)
    assert (np.diff(columns["seconds"]) >= 0).all()
    assert columns["seconds"][-1] <= sum(run["step_seconds"]) * (1 + 1e-5)
    assert session.run is not None
    assert columns["bytes"].max() == max(timeline.peak_bytes for timeline in session.run.timelines)


def test_a_plan_for_a_gpu_that_does_not_hold_here_is_made_again_and_drawn() -> None:
    class Convolutions(nn.Module):
        """Convolutions take temporary memory on this computer, which a plan for a GPU does not count."""

        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(*(nn.Conv2d(8, 8, 3, padding=1) for _ in range(4)))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers(x).square().mean()

    step = TrainStep(Convolutions(), torch.ones(4, 8, 24, 24), loss=lambda model, x: model(x))
    session = Session(step, machine="v100-16gb", budget="100%")
    recorder = MessageRecorder(session)
    before, budget = session.plan, session.budget
    assert before is not None
    mark = recorder.mark()
    session.start_run(1)
    run = recorder.wait("run", over)
    assert (run["state"], run["mismatched"], run["elsewhere"]) == ("done", 0, False)
    assert run["note"].startswith("Planned anew for this CPU, and drawn, within the same budget: ")
    assert "KiB of temporary memory here, and the plan, made for v100-16gb," in run["note"]
    recorder.planned(mark)
    assert session.run is not None
    assert session.plan is session.run.plan
    assert (session.machine.name, session.budget) == ("cpu", budget)
    assert run["predicted_step_seconds"] == session.plan.predicted.seconds
    assert planner.validate(session.plan, session.graph) == []
    mark = recorder.mark()
    session.machine = "v100-16gb"
    recorder.wait("machine", lambda said: said["name"] == "v100-16gb", mark)
    recorder.planned(mark)
    assert session.plan is not None
    assert (session.plan.residencies, session.plan.machine) == (before.residencies, "v100-16gb")


def test_a_run_that_has_no_room_is_refused_before_anything_is_made() -> None:
    rows = free_bytes() // (4 * 64 * 6)
    layers = lambda: nn.Sequential(*(one for _ in range(8) for one in (nn.Linear(64, 64), nn.Tanh())))  # noqa: E731
    step = TrainStep(layers, lambda: torch.ones(rows, 64), loss=lambda model, x: model(x).square().mean())
    session = Session(step, machine="h100")
    plan, recorder = session.plan, MessageRecorder(session)
    session.start_run(1)
    run = recorder.wait("run", over)
    assert run["state"] == "refused"
    assert run["sentence"].startswith("Running Sequential on this computer takes ")
    assert "make the model or the batch smaller" in run["sentence"]
    assert "The model is as it was." in run["sentence"]
    assert (step.live, session.plan) == (None, plan)
    assert "anew" not in run["note"]


def test_a_run_that_fails_in_a_later_step_says_where_and_that_the_steps_before_it_are_kept() -> None:
    words = torch.arange(6)
    step = TrainStep(nn.Embedding(12, 8), words, loss=lambda model, batch: model(batch).square().sum())
    session = Session(step, machine="cpu", budget="200%")
    assert session.plan is not None
    recorder = MessageRecorder(session)
    session.start_run(10**6, check=False)
    recorder.wait("run", lambda run: run["step"] > 0)
    step.batch_leaves()[0][4] = 12  # no such word
    run = recorder.wait("run", over)
    assert (run["state"], len(run["losses"]) > 0) == ("failed", True)
    assert "embedding" in run["sentence"]
    assert f"step {run['step'] + 1}" in run["sentence"]
    assert run["sentence"].endswith((" finished steps.", " the 1 finished step."))  # of a busy machine
    step.batch_leaves()[0][4], mark = 4, recorder.mark()
    session.start_run(1, check=False)
    assert recorder.wait("run", over, mark)["state"] == "done"


def test_a_cancelled_run_keeps_the_steps_that_were_made() -> None:
    session = Session(zoo.load("mlp:layers=6"), machine="cpu", budget="150%")
    assert session.plan is not None
    recorder = MessageRecorder(session)
    session.request({"do": "run", "steps": 100000, "check": False})
    recorder.wait("run", lambda run: run["step"] > 0)
    session.request({"do": "cancel_run"})
    assert recorder.last("run")["doing"] == "stopping"
    run = recorder.wait("run", over)
    assert run["state"] == "cancelled"
    assert f"{run['step']:,}" in run["sentence"]
    assert "The model holds the" in run["sentence"]


def test_a_run_cancelled_the_moment_it_is_said_to_go_on_ends() -> None:
    session = Session(zoo.load("mlp:layers=6"), machine="cpu", budget="150%")
    assert session.plan is not None

    def cancel(message: Message) -> None:
        if message.kind == "run":
            leave()
            session.request({"do": "cancel_run"})

    recorder, leave = MessageRecorder(session), session.listen(cancel)
    session.start_run(10**6, check=False)
    assert recorder.wait("run", over)["state"] == "cancelled"


def test_a_second_run_takes_the_place_of_the_first() -> None:
    session = Session(zoo.load("mlp:layers=6"), machine="cpu", budget="150%")
    assert session.plan is not None
    recorder = MessageRecorder(session)
    session.start_run(100000, check=False)
    first = session.run
    recorder.wait("run", lambda run: run["step"] > 0)
    mark = recorder.mark()
    session.start_run(2, check=False)
    run = recorder.wait("run", over, mark)
    assert (run["state"], run["step"]) == ("done", 2)
    assert first is not None
    assert first.progress.state == "cancelled"


def test_what_cannot_be_run_says_why() -> None:
    session = Session(capture(zoo.load("mlp:layers=2")))
    recorder = MessageRecorder(session)
    recorder.planned()
    session.request({"do": "run"})
    assert "a graph alone cannot be run" in recorder.last("notice")["sentence"]
    session = Session(zoo.load("mlp:layers=2"), budget=1)
    recorder = MessageRecorder(session)
    recorder.planned()
    session.request({"do": "run"})
    assert "no plan to run yet" in recorder.last("notice")["sentence"]


def test_a_step_is_captured_and_run_under_the_autocast_in_which_the_bench_was_made() -> None:
    step = zoo.load("mlp:layers=6")
    twin, plain = step.clone(), step.clone()
    with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
        session = Session(step, machine="cpu", budget="150%")
        expected = [float(twin.eager().detach()) for _ in range(2)]
    recorder = MessageRecorder(session)
    assert session.plan is not None
    mark = recorder.mark()
    session.start_run(2)
    run = recorder.wait("run", over, mark)
    assert (run["state"], run["mismatched"], run["losses"]) == ("done", 0, expected)
    assert float(plain.eager().detach()) != expected[0]
    assert any("bfloat16" in storage.dtype for storage in session.graph.tensors)


def test_a_step_that_somebody_else_begins_to_run_meanwhile_is_told_and_not_waited_for() -> None:
    step = zoo.load("gpt:layers=2,hidden=64,sequence=32,optimizer=adam")  # attention takes temporary memory on a CPU
    session = Session(step, machine="cpu", budget="79%")
    assert session.plan is not None
    others: list[Run] = []

    def claim(message: Message) -> None:
        if message.kind == "run" and not others:
            assert session.run is not None
            with pytest.raises(StowageError):
                session.run.wait()
            others.append(planner.run(step, steps=10**6))

    session.listen(claim)
    recorder = MessageRecorder(session)
    mark = recorder.mark()
    session.start_run(1)
    run = recorder.wait("run", over, mark)
    others[0].cancel()
    assert run["state"] == "failed"
    assert "this step is being run" in run["sentence"]
