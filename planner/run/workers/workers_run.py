"""The handle of a run on several workers, which goes on in a background thread."""

from __future__ import annotations

from planner.partition import PartitionPlan
from planner.plan import SwapPlan
from planner.progress import ShowProgress
from planner.run.loop.run_handle import RunHandle
from planner.run.workers.workers_log import WorkersStep
from planner.run.workers.workers_result import WorkersResult
from planner.run.workers.workers_thread import WorkersThread
from planner.shutdown import on_shutdown


class WorkersRun(RunHandle[WorkersResult]):
    """A run on several workers, created by `planner.run_workers`; dropping it ends it between two steps.

    Attributes:
        partition: how the step is split.
    """

    _BEGINS = "planner.run_workers"

    def __init__(self, runner: WorkersThread, progress: ShowProgress) -> None:
        self.partition: PartitionPlan = runner.asked.partition
        self._runner = runner
        super().__init__(runner, progress, runner.asked.steps, runner.keeper.release)
        on_shutdown(runner.keeper.release)

    @property
    def plans(self) -> tuple[SwapPlan, ...] | None:
        """The plan of each worker, once there are some."""
        planned = self._runner.planned
        return None if planned is None else planned.plans

    @property
    def worker_steps(self) -> tuple[WorkersStep, ...]:
        """What was measured of the last steps, at most 64: seconds, bytes received and peak of each worker."""
        return self._runner.done.last_records()

    def cancel(self) -> None:
        """Stop after the current step; finished steps are kept, as `planner.run` keeps them.

        A long step is abandoned if that loses no other: the first one of the run, and any of `steps`, whose state is
        brought back after each. `wait` then returns the result of the finished steps; if there are none, it raises a
        StowageError, and the model and the generator are unchanged. Cancelling again does nothing.
        """
        self._runner.cancel()

    def close(self) -> None:
        """End the workers that wait for more `steps`, which would otherwise go on until the handle is dropped.

        `steps` starts others if it is called again.
        """
        if self.progress.state != "running":
            self._runner.keeper.close()

    def _of(self) -> str:
        workers = self.partition.workers
        return f"{self.name} on {workers} worker{'' if workers == 1 else 's'}"
