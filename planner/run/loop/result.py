"""The result of a run, which may be unfinished or stopped."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from planner.plan import SwapPlan, Timeline
from planner.run.checks.eager_reference import Check
from planner.run.checks.retrace import Recheck
from planner.run.devices.accelerator.device_memory import DeviceMemory
from planner.run.executor.executor import Executor, StepRecord
from planner.run.loop.gpu_memory import GpuMemory, gpu_memory
from planner.run.loop.step_log import StepLog

#: The shapes of a batch's tensors, in order.
BatchShapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class RunResult:
    """The result of a run.

    Args:
        name: of the step.
        device: the device that it ran on.
        losses: of every step, in order; a step that returns no single number has none.
        extras: what the loss of every step returned beside its value, in order, as copies that no later step changes;
            empty if it returns nothing else. If all take more than 256 MiB, those of the first steps are None.
        step_seconds: durations of the steps.
        eager_step_seconds: durations of the eager steps that the run was checked against.
        predicted_step_seconds: duration of a step as planned.
        budget_bytes, peak_bytes, predicted_peak_bytes: device memory allowed, used as measured, and of the planned
            arena. On a GPU, temporary memory and what libraries keep lie beside the arena, within the budget.
        host_bytes: size of the host slab.
        skipped: which steps, from 0, have updated nothing, because the gradient scaler found a gradient that is not
            finite.
        library_bytes: the part of `peak_bytes` that libraries keep on a GPU, such as cuBLAS its workspace.
        gpu_memory: what was in use on the whole GPU when that was most, as seen ten times a second and at the end, and
            what it consisted of; None on the CPU.
        mismatches: names, with their step, of tensors that differed from eager PyTorch in any bit.
        compared: number of tensors compared.
        timelines: measured, of the last steps, at most 64, without those of smaller batches, which have another plan.
        outputs: of the last step, the loss first, then the tensors of its extras.
        plan: the plan that was run, with a batch of the size of the step's own.
        captures: number of graphs captured for the run: one, and another for each change that leads to other calls.
        checked: which steps were compared with eager PyTorch, or why none was, in words.
        rechecks, recheck_seconds: how often the step was captured again and compared, and the time that took.
        launched_together: how many calls of a step were launched together, as graphs of the device, in words; why none
            were; empty for a device without graphs, and before the second step.
        measured_busy: whether the steps are so much faster than planned that the op times must have been measured while
            the computer was busy; they are measured again for the next plan.
    """

    name: str
    device: str
    losses: tuple[float, ...]
    extras: tuple[Any, ...]
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
    launched_together: str = ""
    measured_busy: bool = False
    skipped: tuple[int, ...] = ()
    library_bytes: int = 0
    gpu_memory: GpuMemory | None = None


class Stopped(KeyboardInterrupt):
    """Ctrl-C ended a run that had made steps; the live model, its buffers and its optimizer include these steps.

    Args:
        made: how many steps were made.
        request: number of steps requested; None if unknown.
        result: of the steps that were made.
    """

    def __init__(self, made: int, request: int | None, result: Any) -> None:
        of = "" if request is None else f" of {request}"
        super().__init__(f"stopped after {made}{of} steps")
        self.result = result


@dataclass(eq=False)
class RunLog(StepLog[tuple[Timeline, bool]]):
    """The steps made so far; one thread adds, any thread may read.

    Records are the timelines of the last steps, and whether their batches are smaller than the step's own.

    Attributes:
        made_with: by the shapes of a batch's tensors, how many steps were made with such a batch.
    """

    peak_bytes: int = 0
    scratch_bytes: int = 0
    library_bytes: int = 0
    eager_seconds: list[float] = field(default_factory=list)
    mismatches: list[str] = field(default_factory=list)
    compared: int = 0
    captures: int = 0
    checked: str = "no step"
    launched_together: str = ""
    measured_busy: bool = False
    made_with: Counter[BatchShapes] = field(default_factory=Counter)

    def add(self, record: StepRecord, executor: Executor, *, smaller: bool) -> None:
        """Record a step.

        Args:
            record: of the step.
            executor: that made it.
            smaller: whether its batch is smaller than the step's own, and so its timeline one of another plan.
        """
        self.peak_bytes = max(self.peak_bytes, executor.peak_bytes)
        self.scratch_bytes = max(self.scratch_bytes, executor.scratch_bytes)
        self.library_bytes = max(self.library_bytes, executor.library_bytes)
        self.add_step((record.timeline, smaller), record.outputs, record.timeline.seconds, skipped=record.skipped)

    def timelines_by_plan(self) -> tuple[Timeline, ...]:
        """The timelines of those of the last steps that had a batch of the size of the step's own."""
        return tuple(timeline for timeline, smaller in self.last_records() if not smaller)

    def add_check(self, check: Check) -> None:
        """Record the comparison of a step with eager PyTorch."""
        self.mismatches += check.mismatches
        self.compared += check.compared
        self.eager_seconds.append(check.seconds)

    def result(
        self, name: str, device: str, plan: SwapPlan, recheck: Recheck, most: DeviceMemory | None = None
    ) -> RunResult:
        """The result of the steps so far.

        Args:
            name, device, plan, recheck: of the run.
            most: what everyone took of the device when that was most.
        """
        parts = self.scratch_bytes, self.library_bytes
        return RunResult(
            name=name,
            device=device,
            losses=tuple(self.losses),
            extras=self.all_extras(),
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
            rechecks=recheck.looks,
            recheck_seconds=recheck.seconds,
            launched_together=self.launched_together,
            measured_busy=self.measured_busy,
            skipped=tuple(self.skipped),
            timelines=self.timelines_by_plan(),
            outputs=self.outputs,
            plan=plan,
            library_bytes=self.library_bytes,
            gpu_memory=None if most is None else gpu_memory(most, plan.peak_bytes, *parts),
        )
