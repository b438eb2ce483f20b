"""A run that goes on in a thread while one looks on, stops it, or trains over more batches with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal

from planner.dropping import when_dropped
from planner.errors import StowageError
from planner.plan import SwapPlan, Timeline
from planner.progress import Progress, get_ready, shown, silent
from planner.run.monitor import Snapshot
from planner.run.preparing import Asked
from planner.run.result import RunResult, Stopped
from planner.run.runner import Runner

State = Literal["running", "cancelled", "done", "failed"]


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is.

    Args:
        state: `"running"`, also while it is planned; `"cancelled"`, `"done"`, `"failed"`.
        doing: what is being done, in words.
        share: how much of that is done, from 0 to 1.
        step: steps that were made.
        steps: how many there are to be; None where nobody knows.
        seconds: since the run began, until it ended.
    """

    state: State
    doing: str
    share: float
    step: int
    steps: int | None
    seconds: float


class Run:
    """Steps by a plan. Made by `planner.run`; dropping the last reference to it ends it between two steps."""

    def __init__(self, asked: Asked, progress: Progress) -> None:
        self._runner = Runner(asked, progress if callable(progress) else silent)
        self._shown = progress is True
        if self._shown:
            get_ready()  # before the run's thread captures
        self._runner.start()
        when_dropped(self, self._runner.stop.ask)

    def __repr__(self) -> str:
        progress = self.progress
        of = "" if progress.steps is None else f" of {progress.steps}"
        return f"<Run of {self._runner.name}: {progress.state}, {progress.step}{of} steps made, {progress.doing}>"

    @property
    def name(self) -> str:
        """Of what is run."""
        return self._runner.name

    @property
    def progress(self) -> RunProgress:
        """How far the run is; cheap to read."""
        runner = self._runner
        return RunProgress(
            runner.state, runner.doing, runner.share, len(runner.done.seconds), runner.steps, runner.seconds
        )

    @property
    def plan(self) -> SwapPlan | None:
        """The plan, once there is one."""
        return self._runner.plan

    @property
    def losses(self) -> tuple[float, ...]:
        """Of every step so far; none where the step returns no single number."""
        return tuple(self._runner.done.losses)

    @property
    def step_seconds(self) -> tuple[float, ...]:
        """Of every step so far."""
        return tuple(self._runner.done.seconds)

    @property
    def timelines(self) -> tuple[Timeline, ...]:
        """Measured, of the last steps, 64 at most."""
        return self._runner.done.last_timelines()

    @property
    def timeline(self) -> Timeline | None:
        """Measured, of the last finished step; None before there is one."""
        timelines = self.timelines
        return timelines[-1] if timelines else None

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """How full the arena was, ten times a second while steps are made; in a long run the older ones thin out."""
        return self._runner.monitor.snapshots

    @property
    def result(self) -> RunResult | None:
        """What the finished steps amount to; None before there is a plan."""
        return self._runner.result()

    @property
    def error(self) -> BaseException | None:
        """What went wrong, if anything did."""
        return self._runner.error

    def wait(self, seconds: float | None = None) -> RunResult:
        """Wait until the run ends or that many seconds are over; returns what the finished steps amount to.

        Ctrl-C cancels the run.

        Raises:
            StowageError: it went wrong, or was cancelled or is still on its way before its first step is finished.
            Stopped: Ctrl-C, after at least one step; it is a KeyboardInterrupt and holds what was done.
        """
        runner = self._runner
        try:
            with shown(lambda: (runner.share, runner.doing)) if self._shown else nullcontext():
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
        if runner.stop.asked:
            raise StowageError("the run was cancelled before it had made a step; run again")
        raise StowageError(f"no step is finished after {seconds} seconds; wait longer, or look at progress")

    def cancel(self) -> None:
        """Stop after the step that is being made, or in the middle of a long one; finished steps stay.

        `wait` then returns what these amount to; where there are none, it says so in a StowageError, and the model and
        the generator are as they were. Cancelling again does nothing.
        """
        self._runner.cancel()

    def steps(self, batches: Iterable[Any]) -> Iterator[float]:
        """Train over many batches, a step with each; waits for the run's own steps first.

        The live model, its buffers and its optimizer hold every finished step, also when the loop is left early. The
        steps draw from PyTorch's generator, as eager PyTorch would.

        Args:
            batches: pytrees like the step's own batch: as many tensors, of the same shapes and dtypes.

        Yields:
            The loss of each step.

        Raises:
            StowageError: a batch is another one than the step was captured with, an op raised, or the run was
                cancelled before.
        """
        self.wait()
        if self._runner.stop.asked:
            raise StowageError("this run was cancelled; begin another one with planner.run")
        yield from self._runner.loop(batches)
