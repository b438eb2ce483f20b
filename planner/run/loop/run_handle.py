"""What every handle of a run has: progress, cancellation, waiting, and training on more batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from planner.errors import StowageError
from planner.finalizers import on_dropped
from planner.progress import ShowProgress, get_ready, shown
from planner.run.loop.background_run import BackgroundRun, State
from planner.run.loop.result import Stopped

Result = TypeVar("Result")


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


class RunHandle(Generic[Result]):
    """The handle of a run that goes on in a background thread; dropping the last reference ends it between two steps.

    Args:
        runner: not started yet.
        progress: whether to show it while somebody waits.
        asked: how many steps the run makes by itself; None if unknown.
        end: asks the run to end, and refers to nothing that may refer to this handle, such as an error and its frames.
    """

    #: Begins another one, in words.
    _BEGINS = "planner.run"

    def __init__(
        self, runner: BackgroundRun, progress: ShowProgress, asked: int | None, end: Callable[[], object]
    ) -> None:
        self._background, self._asked = runner, asked
        self._shown = runner.shows = progress is True
        if self._shown:
            get_ready()  # before the run's thread captures
        runner.start()
        on_dropped(self, end)

    def __repr__(self) -> str:
        progress = self.progress
        of = "" if progress.steps is None else f" of {progress.steps}"
        return (
            f"<{type(self).__name__} of {self._of()}: {progress.state}, {progress.step}{of} steps made, "
            f"{progress.doing}>"
        )

    @property
    def name(self) -> str:
        """The name of the step."""
        return self._background.name

    @property
    def progress(self) -> RunProgress:
        """The progress of the run; cheap to read."""
        runner = self._background
        doing, share, made = runner.progress.doing, runner.progress.share, len(runner.log.seconds)
        return RunProgress(runner.state, doing, share, made, runner.steps, runner.seconds)

    @property
    def losses(self) -> tuple[float, ...]:
        """The losses of all steps so far; a step that returns no single number has none."""
        return tuple(self._background.log.losses)

    @property
    def step_seconds(self) -> tuple[float, ...]:
        """The durations of all steps so far."""
        return tuple(self._background.log.seconds)

    @property
    def result(self) -> Result | None:
        """The result of the finished steps; None before there is a plan."""
        return cast("Result | None", self._background.result)

    @property
    def error(self) -> BaseException | None:
        """The error that ended the run, if any."""
        return self._background.error

    def wait(self, seconds: float | None = None) -> Result:
        """Wait until the run ends or the timeout expires; returns the result of the finished steps.

        Ctrl-C cancels the run.

        Args:
            seconds: the timeout; None waits for the end.

        Raises:
            StowageError: the run failed, or no step was finished before it was cancelled or the timeout expired.
            Stopped: Ctrl-C after at least one step; it is a KeyboardInterrupt and holds the result.
        """
        runner = self._background
        try:
            with shown(runner.progress) if self._shown else nullcontext():
                runner.await_end(seconds)
        except KeyboardInterrupt as stop:
            runner.cancel(0.0)
            runner.await_end(None)
            if not runner.log.seconds or runner.result is None:
                raise
            raise Stopped(len(runner.log.seconds), self._asked, runner.result) from stop
        if runner.failure is not None:
            raise runner.failure
        result = self.result
        if result is not None and (runner.log.seconds or runner.ready):
            return result
        if runner.stop.requested:
            raise StowageError("the run was cancelled before it had made a step; run again")
        raise StowageError(f"no step is finished after {seconds} seconds; wait longer, or look at progress")

    def steps(self, batches: Iterable[Any]) -> Iterator[float]:
        """Train on many batches, one step each; waits for the run's own steps first.

        The live model, its buffers and its optimizer include every finished step, also if the loop is left early. The
        steps draw from PyTorch's generator, as eager PyTorch would.

        Args:
            batches: pytrees like the step's own batch, with the same number of tensors, shapes and dtypes. In a run
                without workers some may have fewer rows, as the last one of a DataLoader: the step is then captured and
                planned again within the same budget, which takes a second or two once per size.

        Yields:
            The loss of each step.

        Raises:
            StowageError: a batch does not match the one that the step was captured with, an op raised, or the run was
                cancelled before.
        """
        self.wait()
        if self._background.stop.requested:
            raise StowageError(f"this run was cancelled; begin another one with {self._BEGINS}")
        yield from self._background.loop(batches)

    def _of(self) -> str:
        """What is run, in words."""
        return self._background.name
