"""A run for the page: predicted and measured memory, step times, and whether the bits are eager PyTorch's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.plan import Timeline
from widgets.canvas.columns import Message, message
from widgets.info.live_memory import MeasuredMemory

_NONE = np.zeros(0)


@dataclass(frozen=True)
class RunState:
    """How far a run is.

    Args:
        state: `"empty"`, `"planning"`, `"running"`, `"done"`, `"cancelled"`, `"failed"`, or `"refused"`
            where there was no memory for it.
        doing, share: what is being done, and how much of all is.
        step, steps: steps finished, and asked for.
        losses, step_seconds, eager_step_seconds: of every finished step.
        predicted_step_seconds: as the plan foresees; None without a plan.
        budget_bytes, peak_bytes, predicted_peak_bytes: allowed, measured and planned.
        compared, mismatched: tensors compared with eager PyTorch bit for bit, and how many differ.
        checked: which steps were, or why none was, in words.
        sentence: what there is to say.
        differences: what the difference of the peaks is made of, in bytes.
        note: which plan it is that runs, where it is none for this computer or not the one that is drawn.
        elsewhere: whether the predicted seconds are another machine's.
    """

    state: str = "empty"
    doing: str = ""
    share: float | None = None
    step: int = 0
    steps: int = 0
    losses: Sequence[float] = ()
    step_seconds: Sequence[float] = ()
    predicted_step_seconds: float | None = None
    eager_step_seconds: Sequence[float] = ()
    budget_bytes: int | None = None
    peak_bytes: int | None = None
    predicted_peak_bytes: int | None = None
    compared: int = 0
    mismatched: int = 0
    checked: str = ""
    sentence: str = ""
    differences: Sequence[tuple[str, int]] = ()
    note: str = ""
    elsewhere: bool = False


def run_message(state: RunState, predicted: Timeline | None = None, measured: MeasuredMemory | None = None) -> Message:
    """Pack how far a run is.

    Args:
        state: in numbers and words.
        predicted: one step as the plan foresees it.
        measured: memory since the run began.
    """
    content = {name: getattr(state, name) for name in RunState.__dataclass_fields__}
    return message("run", content, {
        "predicted_seconds": ("f4", _NONE if predicted is None else predicted.sample_seconds),
        "predicted_bytes": ("f8", _NONE if predicted is None else predicted.sample_bytes),
        "seconds": ("f4", _NONE if measured is None else measured.seconds),
        "bytes": ("f8", _NONE if measured is None else measured.bytes),
        "step_start": ("f4", _NONE if measured is None else measured.step_start),
    })  # fmt: skip
