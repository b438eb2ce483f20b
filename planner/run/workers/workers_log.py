"""What workers have done so far, step by step."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from planner.program import Outputs
from planner.run.checks.eager_difference import Difference
from planner.run.loop.step_log import StepLog
from planner.run.workers.plans.worker_plans import WorkerPlans
from planner.run.workers.workers_result import WorkersResult


@dataclass(frozen=True, slots=True)
class WorkersStep:
    """What was measured of one step.

    Args:
        seconds: per worker, how long it took.
        received_bytes: per worker, what came from the others.
        peak_bytes: per worker, the memory that it has used so far.
    """

    seconds: tuple[float, ...]
    received_bytes: tuple[int, ...]
    peak_bytes: tuple[int, ...]


@dataclass(eq=False)
class WorkersLog(StepLog[WorkersStep]):
    """The steps made so far, with what was measured of the last of them; one thread adds, any thread may read."""

    difference: Difference | None = None

    def add(self, record: WorkersStep, outputs: tuple[Tensor, ...], *, skipped: bool) -> None:
        """Record a step."""
        self.add_step(record, Outputs(outputs), max(record.seconds), skipped=skipped)

    def result(self, planned: WorkerPlans, budget: str | int | None, transport: str) -> WorkersResult:
        """The result of the steps so far.

        Args:
            planned: what the workers compute.
            budget: that was asked for.
            transport: between the workers.
        """
        records, plans = self.last_records(), planned.plans
        nothing = (0,) * len(plans)
        return WorkersResult(
            name=planned.graph.name,
            workers=len(plans),
            transport=transport,
            losses=tuple(self.losses),
            outputs=self.outputs,
            step_seconds=tuple(self.seconds),
            budget_bytes=None if budget is None else max(plan.budget_bytes for plan in plans),
            peak_bytes=records[-1].peak_bytes if records else nothing,
            planned_peak_bytes=tuple(plan.peak_bytes for plan in plans),
            host_bytes=tuple(plan.host_bytes for plan in plans),
            bytes_counted=sum(records[-1].received_bytes) if records else 0,
            bytes_predicted=planned.bytes_predicted,
            difference=self.difference,
            plans=plans,
            skipped=tuple(self.skipped),
        )
