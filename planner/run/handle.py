"""The handle of a run, which goes on in a background thread: progress, cancellation, and training on more batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from planner.errors import StowageError
from planner.finalizers import on_dropped
from planner.plan import SwapPlan, Timeline
from planner.progress import ShowProgress, get_ready, shown
from planner.run.loop.monitor import Snapshot
from planner.run.loop.result import RunResult, Stopped
from planner.run.loop.run_thread import PATIENCE, RunThread
from planner.run.prepare.plan_run import RunRequest

State = Literal["running", "cancelled", "done", "failed"]


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The progress of a run.

    Args:
        state: `"running"`, also while it is being planned; `"cancelled"`, `"done"`, `"failed"`.
        doing: a status text.
        share: share done, from 0 to 1.
        step: number of steps made.
        steps: total number of steps; None if unknown.
        seconds: from the start of the run until now or its end.
    """

    state: State
    doing: str
    share: float
    step: int
    steps: int | None
    seconds: float


class Run:
    """A run of steps by a plan, created by `planner.run`; dropping the last reference ends it between two steps."""

    def __init__(self, request: RunRequest, progress: ShowProgress) -> None:
        self._runner = RunThread(request, progress if callable(progress) else None)
        self._shown = progress is True
        if self._shown:
            get_ready()  # before the run's thread captures
        self._runner.start()
        on_dropped(self, partial(self._runner.stop.cancel, PATIENCE))

    def __repr__(self) -> str:
        progress = self.progress
        of = "" if progress.steps is None else f" of {progress.steps}"
        return f"<Run of {self._runner.name}: {progress.state}, {progress.step}{of} steps made, {progress.doing}>"

    @property
    def name(self) -> str:
        """The name of the step."""
        return self._runner.name

    @property
    def progress(self) -> RunProgress:
        """The progress of the run; cheap to read."""
        runner = self._runner
        doing, share, made = runner.progress.doing, runner.progress.share, len(runner.done.seconds)
        return RunProgress(runner.state, doing, share, made, runner.steps, runner.seconds)

    @property
    def plan(self) -> SwapPlan | None:
        """The plan, once there is one."""
        return self._runner.plan

    @property
    def losses(self) -> tuple[float, ...]:
        """The losses of all steps so far; a step that returns no single number has none."""
        return tuple(self._runner.done.losses)

    @property
    def step_seconds(self) -> tuple[float, ...]:
        """The durations of all steps so far."""
        return tuple(self._runner.done.seconds)

    @property
    def timelines(self) -> tuple[Timeline, ...]:
        """The measured timelines of the last steps, at most 64."""
        return self._runner.done.last_timelines()

    @property
    def timeline(self) -> Timeline | None:
        """The measured timeline of the last finished step; None before there is one."""
        timelines = self.timelines
        return timelines[-1] if timelines else None

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """Samples of the arena's occupancy, ten per second while steps are made; in a long run older ones thin out."""
        return self._runner.monitor.snapshots

    @property
    def result(self) -> RunResult | None:
        """The result of the finished steps; None before there is a plan."""
        return self._runner.result()

    @property
    def error(self) -> BaseException | None:
        """The error that ended the run, if any."""
        return self._runner.error

    def wait(self, seconds: float | None = None) -> RunResult:
        """Wait until the run ends or the timeout expires; returns the result of the finished steps.

        Ctrl-C cancels the run.

        Args:
            seconds: the timeout; None waits for the end.

        Raises:
            StowageError: the run failed, or no step was finished before it was cancelled or the timeout expired.
            Stopped: Ctrl-C after at least one step; it is a KeyboardInterrupt and holds the result.
        """
        runner = self._runner
        try:
            with shown(runner.progress) if self._shown else nullcontext():
                runner.await_end(seconds)
        except KeyboardInterrupt as stop:
            runner.cancel(0.0)
            runner.await_end(None)
            result = runner.result()
            if result is None or not result.step_seconds:
                raise
            raise Stopped(result, runner.asked.steps) from stop
        if runner.failure is not None:
            raise runner.failure
        result = runner.result()
        if result is not None and (result.step_seconds or runner.ready):
            return result
        if runner.stop.requested:
            raise StowageError("the run was cancelled before it had made a step; run again")
        raise StowageError(f"no step is finished after {seconds} seconds; wait longer, or look at progress")

    def cancel(self) -> None:
        """Stop after the current step, or during it if it is long; finished steps are kept.

        `wait` then returns their result; if there are none, it raises a StowageError, and the model and the generator
        are unchanged. Cancelling again does nothing.
        """
        self._runner.cancel()

    def steps(self, batches: Iterable[Any]) -> Iterator[float]:
        """Train on many batches, one step each; waits for the run's own steps first.

        The live model, its buffers and its optimizer include every finished step, also if the loop is left early. The
        steps draw from PyTorch's generator, as eager PyTorch would.

        Args:
            batches: pytrees like the step's own batch, with the same number of tensors, shapes and dtypes.

        Yields:
            The loss of each step.

        Raises:
            StowageError: a batch does not match the one that the step was captured with, an op raised, or the run was
                cancelled before.
        """
        self.wait()
        if self._runner.stop.requested:
            raise StowageError("this run was cancelled; begin another one with planner.run")
        yield from self._runner.loop(batches)
