"""A run for the page: predicted and measured memory, step times, and the bitwise comparison with eager PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.plan import Timeline
from widgets.info import MeasuredMemory
from widgets.messages.message import Message, changed, message
from widgets.messages.message_kind import Rest

_NONE = np.zeros(0)


@dataclass(frozen=True)
class RunState:
    """The progress of a run.

    Args:
        state: `"empty"`, `"planning"`, `"running"`, `"done"`, `"cancelled"`, `"failed"`, or `"refused"`
            if there was not enough memory for it.
        doing, share: the current activity, and the share of the whole that is done.
        step, steps: steps finished, and steps requested.
        losses, step_seconds, eager_step_seconds: one value per finished step.
        predicted_step_seconds: as the plan predicts; None without a plan.
        budget_bytes, peak_bytes, predicted_peak_bytes: the limit, the measured peak and the planned peak.
        compared, mismatched: tensors compared with eager PyTorch bit for bit, and how many differ.
        checked: which steps were compared, or why none was, in words.
        sentence: comment on the state.
        differences: parts of the difference between the peaks, as label and bytes.
        note: which plan is run, if it is for another machine or is not the plan shown.
        elsewhere: whether the predicted seconds are for another machine.
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
    """Pack the progress of a run.

    Args:
        state: the progress.
        predicted: timeline of one step as the plan predicts it.
        measured: memory measured since the run began.
    """
    content = {name: getattr(state, name) for name in RunState.__dataclass_fields__}
    return message("run", content, {
        "predicted_seconds": ("f4", _NONE if predicted is None else predicted.sample_seconds),
        "predicted_bytes": ("f8", _NONE if predicted is None else predicted.sample_bytes),
        "seconds": ("f4", _NONE if measured is None else measured.seconds),
        "bytes": ("f8", _NONE if measured is None else measured.bytes),
        "step_start": ("f4", _NONE if measured is None else measured.step_start),
        "gpu_bytes": ("f8", _NONE if measured is None else measured.gpu_bytes),
        "allocator_bytes": ("f8", _NONE if measured is None else measured.allocator_bytes),
    })  # fmt: skip


def run_at_rest(sent: Message, rest: Rest, _: Mapping[str, Message]) -> Message:
    """A run that is still under way as one that was stopped."""
    if sent.content["state"] not in ("planning", "running"):
        return sent
    if rest == "closed":
        return changed(sent, state="cancelled", doing="", sentence="It was closed while this run went on.")
    state = "cancelled" if sent.content["step_seconds"] else "empty"
    return changed(sent, state=state, doing="", sentence="The page was saved while this run went on.")
