"""Measured memory of a run that may be in progress, step after step, and the memory its plan predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import as_sentence
from planner.plan import Timeline
from planner.units import bytes_label, several
from widgets.info.argument_types import require
from widgets.info.residency_spans import Floats, Ints

if TYPE_CHECKING:
    from planner.run import Run, Snapshot

#: Most samples of all steps together, and least number kept for one step.
_SAMPLES = 6000
_FEWEST = 200


@dataclass(frozen=True, eq=False)
class MeasuredMemory:
    """The measured memory of a run, without the time between its steps.

    Args:
        seconds, bytes: `[samples]`, time within the steps, and bytes in use from then on.
        step_start: `[steps begun]`, start of each, in the same seconds.
        gpu_bytes, allocator_bytes: `[steps begun]`, the most in use on the whole GPU during each or, where it was too
            short to look, before it, and what PyTorch's allocator held then; 0 where nothing is known.
    """

    seconds: Floats
    bytes: Ints
    step_start: Floats
    gpu_bytes: Ints
    allocator_bytes: Ints


@dataclass(frozen=True, eq=False)
class LiveMemory:
    """A snapshot of a run.

    Args:
        name: name of the step.
        state: `"running"`, `"cancelled"`, `"done"` or `"failed"`.
        step_seconds: lengths of the finished steps.
        measured: memory of all steps whose samples are kept.
        predicted: timeline of one step; None until there is a plan.
        budget_bytes: the limit; None until there is a plan.
        failure: why the run failed, a sentence; empty if it did not.
    """

    name: str
    state: str
    step_seconds: tuple[float, ...]
    measured: MeasuredMemory
    predicted: Timeline | None
    budget_bytes: int | None
    failure: str = ""

    @property
    def peak_bytes(self) -> int:
        """The largest measured memory so far."""
        return int(self.measured.bytes.max(initial=0))

    @property
    def summary(self) -> str:
        """The picture in one sentence, and a second one that says why if it failed."""
        verb = "failed" if self.failure else f"is {self.state}"
        why = f" {self.failure}" if self.failure else ""
        if self.predicted is None or self.budget_bytes is None:
            return f"The run {verb} and has no plan{'.' if why else ' yet.'}{why}"
        steps = several(len(self.step_seconds), "step")
        return (
            f"The run {verb} after {steps}; at most {bytes_label(self.peak_bytes)} were in use at once, "
            f"{bytes_label(self.predicted.peak_bytes)} are predicted, and the budget is "
            f"{bytes_label(self.budget_bytes)}.{why}"
        )


def get_live_memory(run: Run) -> LiveMemory:
    """Take a snapshot of a run.

    Args:
        run: what `planner.run` returned; it may be in progress.
    """
    from planner.run import Run

    require(run, Run, "run", "what planner.run(step, plan) returns")
    plan, step_seconds = run.plan, run.step_seconds
    measured = measured_memory(run.step_timelines, run.snapshots, step_seconds)
    predicted, budget = (None, None) if plan is None else (plan.predicted, plan.budget_bytes)
    failure = "" if run.error is None else as_sentence(run.error)
    return LiveMemory(run.name, run.progress.state, step_seconds, measured, predicted, budget, failure)


def measured_memory(
    timelines: Sequence[Timeline], snapshots: Sequence[Snapshot], step_seconds: Sequence[float]
) -> MeasuredMemory:
    """Memory over the steps of a run, in sequence.

    Args:
        timelines: timelines of the last finished steps.
        snapshots: snapshots of the whole run; those of the current step are used.
        step_seconds: length of every finished step.
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
    gpu, allocator = _gpu_memory(snapshots, len(begun))
    return MeasuredMemory(np.concatenate(seconds), np.concatenate(sizes), begun, gpu, allocator)


def _gpu_memory(snapshots: Sequence[Snapshot], steps: int) -> tuple[Ints, Ints]:
    """By step, the most in use on the whole GPU, and what the allocator held then."""
    most = np.zeros((steps, 2), np.int64)
    for one in snapshots:
        if one.step < steps and one.gpu_bytes > most[one.step, 0]:
            most[one.step] = one.gpu_bytes, one.allocator_bytes
    for step in range(1, steps):
        if not most[step, 0]:
            most[step] = most[step - 1]
    return most[:, 0], most[:, 1]


def _thinned(seconds: Floats, sizes: Ints, most: int) -> tuple[Floats, Ints]:
    """Reduce to at most `most` samples, each the largest of those it replaces."""
    if len(seconds) <= most:
        return seconds, sizes
    edges = np.linspace(0, len(seconds), most, endpoint=False).astype(np.int64)
    return seconds[edges], np.maximum.reduceat(sizes, edges)
