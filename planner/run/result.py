"""What a run did, also one that goes on or was stopped."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from torch import Tensor

from planner.plan import SwapPlan, Timeline
from planner.run.compare import Check
from planner.run.executor import StepRecord

#: Timelines are as long as the step has ops: those of the last steps are kept.
_TIMELINES = 64


@dataclass(frozen=True, eq=False)
class RunResult:
    """What a run did.

    Args:
        name: of what was run.
        device: what it ran on.
        losses: of every step, in order; none where the step returns no single number.
        step_seconds: of every step.
        eager_step_seconds: of eager PyTorch's steps beside it, where it was checked.
        predicted_step_seconds: what the plan foresaw.
        budget_bytes, peak_bytes, predicted_peak_bytes: device memory allowed, used as measured, and planned.
        host_bytes: size of the host slab.
        mismatches: names of what differed from eager PyTorch in any bit, by step.
        compared: how many tensors were compared.
        captures: how many graphs were captured for it: one, and another for each change that makes other calls.
        checked: which steps were held against eager PyTorch, or why none was, in words.
        rechecks, recheck_seconds: how often the step was captured again and compared, and what that took.
        timelines: measured, of the last steps, 64 at most.
        outputs: what the last step returned, the loss first.
        plan: what was run.
    """

    name: str
    device: str
    losses: tuple[float, ...]
    step_seconds: tuple[float, ...]
    eager_step_seconds: tuple[float, ...]
    predicted_step_seconds: float
    budget_bytes: int
    peak_bytes: int
    predicted_peak_bytes: int
    host_bytes: int
    mismatches: tuple[str, ...]
    compared: int
    timelines: tuple[Timeline, ...]
    outputs: tuple[Tensor, ...]
    plan: SwapPlan
    captures: int = 1
    checked: str = "no step"
    rechecks: int = 0
    recheck_seconds: float = 0.0


class Stopped(KeyboardInterrupt):
    """Ctrl-C ended a run that had made steps; the live model, its buffers and its optimizer are as these left them.

    Args:
        result: of the steps that were made.
        asked: how many were asked for.
    """

    def __init__(self, result: RunResult, asked: int) -> None:
        super().__init__(f"stopped after {len(result.step_seconds)} of {asked} steps")
        self.result = result


@dataclass(eq=False)
class Done:
    """The steps made so far, of which only the last one's outputs are kept; one thread adds, any may read."""

    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    timelines: deque[Timeline] = field(default_factory=lambda: deque(maxlen=_TIMELINES))
    outputs: tuple[Tensor, ...] = ()
    peak_bytes: int = 0
    eager_seconds: list[float] = field(default_factory=list)
    mismatches: list[str] = field(default_factory=list)
    compared: int = 0
    captures: int = 0
    checked: str = "no step"
    rechecks: int = 0
    recheck_seconds: float = 0.0

    def add(self, record: StepRecord, peak_bytes: int) -> None:
        """Note a step."""
        self.timelines.append(record.timeline)
        self.outputs = record.outputs
        self.peak_bytes = max(self.peak_bytes, peak_bytes)
        if self.outputs[0].numel() == 1 and not self.outputs[0].is_complex():
            self.losses.append(float(self.outputs[0]))
        self.seconds.append(record.timeline.seconds)  # last: whoever counts these finds the rest

    def add_check(self, check: Check) -> None:
        """Note what holding a step against eager PyTorch has found."""
        self.mismatches += check.mismatches
        self.compared += check.compared
        self.eager_seconds.append(check.seconds)

    def last_timelines(self) -> tuple[Timeline, ...]:
        """The timelines kept; a deque cannot be read while it changes."""
        while True:
            try:
                return tuple(self.timelines)
            except RuntimeError:
                continue

    def result(self, name: str, device: str, plan: SwapPlan) -> RunResult:
        """What the steps so far amount to.

        Args:
            name, device, plan: of the run.
        """
        return RunResult(
            name=name,
            device=device,
            losses=tuple(self.losses),
            step_seconds=tuple(self.seconds),
            eager_step_seconds=tuple(self.eager_seconds),
            predicted_step_seconds=plan.predicted.seconds,
            budget_bytes=plan.budget_bytes,
            peak_bytes=self.peak_bytes,
            predicted_peak_bytes=plan.peak_bytes,
            host_bytes=plan.host_bytes,
            mismatches=tuple(self.mismatches),
            compared=self.compared,
            captures=self.captures,
            checked=self.checked,
            rechecks=self.rechecks,
            recheck_seconds=self.recheck_seconds,
            timelines=self.last_timelines(),
            outputs=self.outputs,
            plan=plan,
        )
