"""The handle of a run, which goes on in a background thread: progress, cancellation, and training on more batches."""

from __future__ import annotations

from functools import partial
from typing import Any

from planner.plan import SwapPlan, Timeline
from planner.progress import ShowProgress
from planner.run.loop.background_run import PATIENCE
from planner.run.loop.monitor import Snapshot
from planner.run.loop.result import RunResult
from planner.run.loop.run_handle import RunHandle
from planner.run.loop.run_thread import RunThread
from planner.run.prepare.plan_run import RunRequest


class Run(RunHandle[RunResult]):
    """A run of steps by a plan, created by `planner.run`; dropping the last reference ends it between two steps."""

    def __init__(self, request: RunRequest, progress: ShowProgress) -> None:
        self._runner = RunThread(request, progress if callable(progress) else None)
        super().__init__(self._runner, progress, request.steps, partial(self._runner.stop.cancel, PATIENCE))

    @property
    def plan(self) -> SwapPlan | None:
        """The plan, once there is one."""
        return self._runner.plan

    @property
    def extras(self) -> tuple[Any, ...]:
        """What the loss of every step so far returned beside its value, as `RunResult.extras`; the latest is last."""
        return self._runner.done.all_extras()

    @property
    def timelines(self) -> tuple[Timeline, ...]:
        """The measured timelines of those of the last 64 steps that were made by `plan`: not with a smaller batch."""
        return self._runner.done.timelines_by_plan()

    @property
    def step_timelines(self) -> tuple[Timeline, ...]:
        """The measured timelines of the last steps, at most 64, whatever plan they were made by."""
        return tuple(timeline for timeline, _ in self._runner.done.last_records())

    @property
    def timeline(self) -> Timeline | None:
        """The measured timeline of the last finished step; None before there is one."""
        timelines = self.step_timelines
        return timelines[-1] if timelines else None

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """Samples of the arena's occupancy, ten per second while steps are made; in a long run older ones thin out."""
        return self._runner.monitor.snapshots

    def cancel(self) -> None:
        """Stop after the current step, or during it if it is long; finished steps are kept.

        `wait` then returns their result; if there are none, it raises a StowageError, and the model and the generator
        are unchanged. Cancelling again does nothing.
        """
        self._runner.cancel()
