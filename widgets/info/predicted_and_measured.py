"""Prediction of a plan and measurements of its run: memory over time, step times, and busy time of each stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import StowageError
from planner.plan import SwapPlan, Timeline
from planner.units import bytes_label, format_seconds, several
from widgets.info.argument_types import require, require_plan
from widgets.info.residency_spans import Floats, Ints

if TYPE_CHECKING:
    from planner.run import RunResult


@dataclass(frozen=True, eq=False)
class Curve:
    """Bytes over one step.

    Args:
        seconds: `[samples]`, from the start of the step, ascending.
        bytes: `[samples]`, in use from that time on.
        end: length of the step in seconds.
    """

    seconds: Floats
    bytes: Ints
    end: float


@dataclass(frozen=True, slots=True)
class Busy:
    """Seconds of one step in which each stream is busy, and in which compute is idle."""

    compute: float
    swap_out: float
    swap_in: float
    idle: float


@dataclass(frozen=True, eq=False)
class PredictedAndMeasured:
    """A plan's prediction beside its run.

    Args:
        name: name of the step.
        budget_bytes: the limit.
        predicted, measured: bytes in use over a step, and over each step whose timeline was recorded.
        predicted_peak_bytes, peak_bytes: the planned arena and the arena used, fragmentation included.
        predicted_seconds: predicted length of a step.
        step_seconds, eager_seconds: measured per step, for this plan and for eager PyTorch (empty if it was not run).
        predicted_busy, measured_busy: busy time per stream; measured for the median step of those recorded.
        compared, mismatches: tensors compared with eager PyTorch bit for bit, and how many differ.
    """

    name: str
    budget_bytes: int
    predicted: Curve
    measured: tuple[Curve, ...]
    predicted_peak_bytes: int
    peak_bytes: int
    predicted_seconds: float
    step_seconds: tuple[float, ...]
    eager_seconds: tuple[float, ...]
    predicted_busy: Busy
    measured_busy: Busy | None
    compared: int
    mismatches: int

    @property
    def median_seconds(self) -> float:
        """The median measured step."""
        return float(np.median(self.step_seconds)) if self.step_seconds else 0.0

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        within = "within" if self.peak_bytes <= self.budget_bytes else "over"
        text = (
            f"The run took {bytes_label(self.peak_bytes)} of memory, {within} the budget of "
            f"{bytes_label(self.budget_bytes)}; a step takes {format_seconds(self.median_seconds)}"
        )
        if self.predicted_seconds > 0:
            text += f", {format_seconds(self.predicted_seconds)} were predicted"
        if self.compared:
            same = "all equal to" if not self.mismatches else f"{self.mismatches} unequal to"
            text += f"; {several(self.compared, 'tensor')} compared, {same} eager PyTorch's"
        return text + "."


def get_predicted_and_measured(plan: SwapPlan, result: RunResult) -> PredictedAndMeasured:
    """Put a plan and its run side by side.

    Args:
        plan: the plan that was run.
        result: what the run returned.

    Raises:
        StowageError: the run was not one of this plan.
    """
    from planner.run import RunResult

    require_plan(plan)
    require(result, RunResult, "result of a run", "what run.wait() returns")
    spans = (len(plan.order), len(plan.swap_outs), len(plan.swap_ins))
    for timeline in result.timelines:
        if (len(timeline.compute), len(timeline.swap_out), len(timeline.swap_in)) != spans:
            raise StowageError("this run is not one of this plan; pass the result of running the same plan")
    recorded = sorted(result.timelines, key=lambda timeline: timeline.seconds)
    return PredictedAndMeasured(
        name=result.name,
        budget_bytes=plan.budget_bytes,
        predicted=_curve(plan.predicted),
        measured=tuple(_curve(timeline) for timeline in result.timelines),
        predicted_peak_bytes=plan.peak_bytes,
        peak_bytes=result.peak_bytes,
        predicted_seconds=plan.predicted.seconds,
        step_seconds=tuple(result.step_seconds),
        eager_seconds=tuple(result.eager_step_seconds),
        predicted_busy=_busy(plan.predicted),
        measured_busy=_busy(recorded[len(recorded) // 2]) if recorded else None,
        compared=result.compared,
        mismatches=len(result.mismatches),
    )


def _curve(timeline: Timeline) -> Curve:
    return Curve(timeline.sample_seconds, timeline.sample_bytes, timeline.seconds)


def _busy(timeline: Timeline) -> Busy:
    compute, out, into = (
        float((spans[:, 1] - spans[:, 0]).sum()) for spans in (timeline.compute, timeline.swap_out, timeline.swap_in)
    )
    return Busy(compute, out, into, timeline.stall_seconds)
