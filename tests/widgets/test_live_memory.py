"""The picture of a run that goes on, against the run itself."""

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from plotly.graph_objects import FigureWidget
from torch import nn

import planner
import widgets
from planner.errors import StowageError
from planner.run import Run, Snapshot
from tests.widgets.steps import real
from widgets import figures
from widgets.info.live_memory import get_live_memory, measured_memory
from widgets.messages import RunState, run_message
from widgets.session.tasks.running import _differences

SPEC = "mlp:optimizer=adam"


def ended(steps: int = 3) -> Run:
    run = planner.run(real(SPEC)[0], budget="60%", steps=steps)
    run.wait()
    return run


def test_measured_are_the_samples_of_all_steps_one_after_the_other() -> None:
    run = ended()
    info = get_live_memory(run)
    assert (info.state, info.step_seconds) == ("done", run.step_seconds)
    assert np.array_equal(info.measured.bytes, np.concatenate([t.sample_bytes for t in run.timelines]))
    assert np.allclose(info.measured.step_start, np.cumsum([0.0, *run.step_seconds[:-1]]))
    assert (np.diff(info.measured.seconds) >= 0).all()
    assert run.plan is not None
    assert info.peak_bytes == max(t.peak_bytes for t in run.timelines) <= run.plan.budget_bytes
    assert "after 3 steps" in info.summary


def test_steps_with_a_smaller_batch_are_where_they_were_made() -> None:
    step = planner.TrainStep(nn.Linear(64, 64), torch.ones(64, 64), loss=lambda model, x: model(x).square().mean())
    run = planner.run(step, steps=0)
    list(run.steps([torch.ones(64, 64), torch.ones(20, 64), torch.ones(64, 64)]))
    info = get_live_memory(run)
    assert np.allclose(info.measured.step_start, np.cumsum([0.0, *run.step_seconds[:-1]]))
    assert np.array_equal(info.measured.bytes, np.concatenate([t.sample_bytes for t in run.step_timelines]))
    second = (info.measured.seconds > run.step_seconds[0]) & (info.measured.seconds < sum(run.step_seconds[:2]))
    assert info.measured.bytes[second].max() < info.peak_bytes


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_drawn_are_the_samples_and_the_prediction_of_every_step(theme: Any) -> None:
    run = ended(2)
    assert run.plan is not None
    figure = figures.live_memory(run, theme=theme)
    measured, predicted, steps = figure.data
    unit = max(measured.y) / get_live_memory(run).peak_bytes
    assert np.allclose(np.asarray(measured.y) / unit, get_live_memory(run).measured.bytes)
    once = run.plan.predicted.sample_bytes
    assert np.allclose(np.asarray(predicted.y)[: len(once)] / unit, once)
    assert np.isnan(predicted.y).sum() == 2
    assert set(steps.text) == {"step 1", "step 2"}


def test_a_run_that_is_still_planned_is_drawn() -> None:
    run = planner.run(real(SPEC)[0], budget="60%", steps=1)
    figure = figures.live_memory(run)
    assert len(figure.data) == 3
    run.wait()


@pytest.mark.parametrize("spent", ["", "after 1 step;"])
def test_a_run_that_failed_says_why(spent: str) -> None:
    def refuse(share: float, doing: str) -> None:
        if doing.startswith("step 2 of" if spent else "planning"):
            raise StowageError("the disk is full")

    run = planner.run(real(SPEC)[0], budget="60%", steps=3, progress=refuse)
    with pytest.raises(StowageError):
        run.wait()
    summary = get_live_memory(run).summary
    assert summary.startswith(f"The run failed {spent or 'and has no plan.'}")
    assert summary.endswith(". The disk is full.")


def test_watching_goes_on_until_the_run_ends() -> None:
    run = planner.run(real(SPEC)[0], budget="60%", steps=2)
    shown = widgets.watch_run(run)
    assert isinstance(shown, FigureWidget)
    run.wait()
    for thread in threading.enumerate():
        if thread.name == "stowage-watch":
            thread.join()
    assert "done after 2 steps" in shown.layout.meta["summary"]


def test_every_name_of_a_step_has_room_up_to_those_named_before_it() -> None:
    figure = figures.live_memory(ended(40))
    steps = next(trace for trace in figure.data if trace.name == "steps")
    assert 2 < len(steps.text) <= 40
    assert steps.text[0] == "step 1"
    _, high = figure.layout.xaxis.range
    for place, (start, room) in enumerate(zip(steps.base, steps.x, strict=True)):
        assert start + room <= high * (1 + 1e-9)
        assert all(abs(start - before) >= room * (1 - 1e-9) for before in steps.base[:place])


def test_the_memory_of_a_gpu_is_the_most_of_each_step_or_what_was_seen_before_it() -> None:
    seen = [Snapshot(0.1, 1, 0, 8, 50, 20), Snapshot(0.2, 1, 3, 8, 70, 30), Snapshot(0.3, 1, 4, 8, 60, 40),
            Snapshot(0.4, 3, 0, 8, 90, 40), Snapshot(0.5, 9, 0, 8, 99, 99)]  # fmt: skip
    found = measured_memory([], seen, [1.0] * 5)
    assert found.gpu_bytes.tolist() == [0, 70, 70, 90, 90]
    assert found.allocator_bytes.tolist() == [0, 30, 30, 40, 40]
    content = run_message(RunState("running", steps=5), None, found).content
    assert ["gpu_bytes", "f8", 5] in content["columns"]
    assert ["allocator_bytes", "f8", 5] in content["columns"]


def test_what_lies_beside_an_arena_on_a_gpu_is_told_apart() -> None:
    result = SimpleNamespace(device="cuda", library_bytes=8)
    assert _differences(100, 138, result) == [("temporary memory", 30), ("kept by libraries", 8)]
    assert _differences(100, 108, result) == [("kept by libraries", 8)]
    assert _differences(100, 90, result) == [("planned and not used", -10)]
    assert _differences(100, 138, SimpleNamespace(device="cpu", library_bytes=0)) == [
        ("temporary memory beyond the plan", 38)
    ]
