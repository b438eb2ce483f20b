"""The handles of a run on several workers, which goes on in a background thread, here and as one rank of a launch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from planner.partition import PartitionPlan
from planner.plan import SwapPlan
from planner.progress import ShowProgress
from planner.run.loop.result import Stopped
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


class StoppedRank(Stopped, SystemExit):
    """Ctrl-C ended a run of several ranks; uncaught, it ends the process with one line and no traceback.

    A launcher passes Ctrl-C on to all ranks, whose tracebacks would bury what it says itself.

    Args:
        made: how many steps were made.
        request: number of steps requested; None if unknown.
        result: of the steps that were made; None for none.
    """

    def __init__(self, made: int, request: int | None, result: WorkersResult | None) -> None:
        super().__init__(made, request, result)
        self.code = str(self)


class RankRun(WorkersRun):
    """This rank's part in a run, created by `planner.run_workers` in a process that a launcher has started."""

    def wait(self, seconds: float | None = None) -> WorkersResult:
        """Wait until the run ends; as `WorkersRun.wait`, but that Ctrl-C raises a `Stopped` also before a step."""
        try:
            return super().wait(seconds)
        except KeyboardInterrupt:
            raise self._stopped() from None

    def steps(self, batches: Iterable[Any]) -> Iterator[float]:
        """Train on many batches; as `WorkersRun.steps`, but that Ctrl-C during a step raises a `Stopped`."""
        try:
            yield from super().steps(batches)
        except KeyboardInterrupt:
            raise self._stopped() from None

    def _stopped(self) -> StoppedRank:
        progress = self.progress
        return StoppedRank(progress.step, progress.steps, self.result if progress.step else None)
