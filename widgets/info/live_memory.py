"""Memory of a run that may still go on, its steps one after the other, beside what its plan foresees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.plan import Timeline
from widgets.info.stays import Floats, Ints
from widgets.info.units import bytes_text, count_text

if TYPE_CHECKING:
    from planner.run import Run, Snapshot

#: Samples of all steps together, and of one at least.
_SAMPLES = 6000
_FEWEST = 200


@dataclass(frozen=True, eq=False)
class MeasuredMemory:
    """Memory as a run measured it, without what lies between its steps.

    Args:
        seconds, bytes: `[samples]`, of running steps, and in use from then on.
        step_start: `[begun steps]`, where each began.
    """

    seconds: Floats
    bytes: Ints
    step_start: Floats


@dataclass(frozen=True, eq=False)
class LiveMemory:
    """A run as it was at one moment.

    Args:
        name: what is run.
        state: `"running"`, `"cancelled"`, `"done"` or `"failed"`.
        step_seconds: of the finished steps.
        measured: of all steps whose samples are kept.
        predicted: one step; None until there is a plan.
        budget_bytes: the limit, likewise.
    """

    name: str
    state: str
    step_seconds: tuple[float, ...]
    measured: MeasuredMemory
    predicted: Timeline | None
    budget_bytes: int | None

    @property
    def peak_bytes(self) -> int:
        """The most that was measured so far."""
        return int(self.measured.bytes.max(initial=0))

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        if self.predicted is None or self.budget_bytes is None:
            return f"The run is {self.state} and has no plan yet."
        steps = count_text(len(self.step_seconds), "step")
        return (
            f"The run is {self.state} after {steps}; at most {bytes_text(self.peak_bytes)} were in use at once, "
            f"{bytes_text(self.predicted.peak_bytes)} are predicted, and the budget is {bytes_text(self.budget_bytes)}."
        )


def get_live_memory(run: Run) -> LiveMemory:
    """Look at a run.

    Args:
        run: what `planner.run` returned; it may be at work.
    """
    plan, step_seconds = run.plan, run.step_seconds
    measured = measured_memory(run.timelines, run.snapshots, step_seconds)
    foreseen = (None, None) if plan is None else (plan.predicted, plan.budget_bytes)
    return LiveMemory(run.name, run.progress.state, step_seconds, measured, *foreseen)


def measured_memory(
    timelines: Sequence[Timeline], snapshots: Sequence[Snapshot], step_seconds: Sequence[float]
) -> MeasuredMemory:
    """Memory over the steps of a run, one after the other.

    Args:
        timelines: of the last finished steps.
        snapshots: of the whole run; those of the step that is being made are taken.
        step_seconds: of every finished step.
    """
    starts = np.concatenate([[0.0], np.cumsum(step_seconds)])
    first, most = len(step_seconds) - len(timelines), max(_FEWEST, _SAMPLES // max(1, len(timelines)))
    seconds, sizes = [np.zeros(0)], [np.zeros(0, np.int64)]
    for number, timeline in enumerate(timelines, first):
        when, size = _thinned(timeline.sample_seconds, timeline.sample_bytes, most)
        seconds.append(starts[number] + when)
        sizes.append(size)
    now = [one for one in snapshots if one.step == len(step_seconds)]
    if now:
        seconds.append(starts[-1] + np.array([one.seconds - now[0].seconds for one in now]))
        sizes.append(np.array([one.bytes for one in now], np.int64))
    begun = starts if now else starts[:-1]
    return MeasuredMemory(np.concatenate(seconds), np.concatenate(sizes), begun)


def _thinned(seconds: Floats, sizes: Ints, most: int) -> tuple[Floats, Ints]:
    """At most so many samples, each the largest of those it stands for."""
    if len(seconds) <= most:
        return seconds, sizes
    edges = np.linspace(0, len(seconds), most, endpoint=False).astype(np.int64)
    return seconds[edges], np.maximum.reduceat(sizes, edges)
