"""The picture of a run that goes on, against the run itself."""

import threading
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from plotly.graph_objects import FigureWidget

import planner
import widgets
from planner.run import Run
from tests.widgets.steps import real
from widgets import figures
from widgets.info.live_memory import get_live_memory

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


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_drawn_are_the_samples_and_the_prediction_of_every_step(theme: Any) -> None:
    run = ended(2)
    assert run.plan is not None
    figure = figures.live_memory(run, theme=theme)
    measured, predicted = figure.data
    unit = max(measured.y) / get_live_memory(run).peak_bytes
    assert np.allclose(np.asarray(measured.y) / unit, get_live_memory(run).measured.bytes)
    once = run.plan.predicted.sample_bytes
    assert np.allclose(np.asarray(predicted.y)[: len(once)] / unit, once)
    assert np.isnan(predicted.y).sum() == 2
    assert {note.text for note in figure.layout.annotations} >= {"step 1", "step 2"}


def test_a_run_that_is_still_planned_is_drawn() -> None:
    run = planner.run(real(SPEC)[0], budget="60%", steps=1)
    figure = figures.live_memory(run)
    assert len(figure.data) == 2
    run.wait()


def test_watching_goes_on_until_the_run_ends() -> None:
    run = planner.run(real(SPEC)[0], budget="60%", steps=2)
    shown = widgets.watch_run(run)
    assert isinstance(shown, FigureWidget)
    run.wait()
    for thread in threading.enumerate():
        if thread.name == "stowage-watch":
            thread.join()
    assert "done after 2 steps" in shown.layout.meta["summary"]


def test_names_of_many_steps_do_not_lie_on_each_other() -> None:
    figure = figures.live_memory(ended(40))
    named = sorted(note.x for note in figure.layout.annotations if str(note.text).startswith("step "))
    assert named
    low, high = figure.layout.xaxis.range
    assert all(later - earlier >= 0.08 * (high - low) for earlier, later in pairwise(named))
