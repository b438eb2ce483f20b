"""From a step to its graph."""

from __future__ import annotations

from planner.capture.lower import lower
from planner.capture.schedules import Scalars
from planner.capture.step import Step
from planner.capture.trace import Progress, trace
from planner.graph import Graph


def capture(step: Step, *, progress: Progress | None = None) -> Graph:
    """The dataflow graph of a whole step, with its program; nothing of the model is allocated.

    The result is kept on the step, so that asking again costs nothing.

    Args:
        step: a `TrainStep` or an `InferenceStep`.
        progress: told the share done, from 0 to 1, and what is being done.

    Raises:
        StowageError: the step does what no graph can hold, or raises.
    """
    if step.graph is None:
        report = progress or _silent
        traced = trace(step, report)
        report(0.8, "building the graph")
        step.graph = lower(traced, Scalars(step, traced.scalars))
        report(1.0, "captured")
    return step.graph


def _silent(share: float, what: str) -> None:
    del share, what
