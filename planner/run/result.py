"""What a run did, also one that was stopped."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from planner.memory import SwapPlan, Timeline
from planner.run.compare import Twin
from planner.run.executor import Executor, StepRecord


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
        timelines: measured, of every step.
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
    """The steps made so far, of which only the last one's outputs are kept.

    Args:
        device, plan: of the run.
        executor, twin: what makes the steps, and what they are compared with.
    """

    device: str
    plan: SwapPlan
    executor: Executor
    twin: Twin | None
    losses: list[float] = field(default_factory=list)
    timelines: list[Timeline] = field(default_factory=list)
    outputs: tuple[Tensor, ...] = ()

    def add(self, record: StepRecord) -> None:
        """Note a step."""
        self.timelines.append(record.timeline)
        self.outputs = record.outputs
        if self.outputs[0].numel() == 1:
            self.losses.append(float(self.outputs[0]))

    def result(self) -> RunResult:
        """What the steps so far amount to."""
        return RunResult(
            name=self.executor.graph.name,
            device=self.device,
            losses=tuple(self.losses),
            step_seconds=tuple(timeline.seconds for timeline in self.timelines),
            eager_step_seconds=tuple(self.twin.seconds) if self.twin else (),
            predicted_step_seconds=self.plan.predicted.seconds,
            budget_bytes=self.plan.budget_bytes,
            peak_bytes=self.executor.peak_bytes,
            predicted_peak_bytes=self.plan.peak_bytes,
            host_bytes=self.plan.host_bytes,
            mismatches=self.twin.mismatches if self.twin else (),
            compared=self.twin.compared if self.twin else 0,
            timelines=tuple(self.timelines),
            outputs=self.outputs,
            plan=self.plan,
        )
