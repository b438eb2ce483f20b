"""What every run in a background thread has: its state, its progress, its end, and its ownership of the step."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import copy_context
from threading import Event, Thread
from time import perf_counter
from typing import Any, Literal

import torch

from planner.cancel import Cancelled, CancelToken, interruptibly
from planner.capture import refuse_meta_default, refuse_observers, unused_leaves
from planner.errors import StowageError
from planner.global_state_lock import global_state_lock
from planner.program import reading_changed
from planner.progress import Listener, Progress, shown
from planner.run.checks.ownership_lock import LONGEST_WAIT, OwnershipLock
from planner.run.checks.retrace import Recheck
from planner.run.checks.thread_settings import TorchContext
from planner.run.loop.batch_count import batch_count, refuse_smaller_last
from planner.run.loop.batch_matcher import Matcher
from planner.run.loop.followed_steps import FollowedSteps
from planner.run.loop.step_log import StepLog
from planner.step import Step, TrainStep
from planner.torch_private import default_generator
from planner.units import format_bytes

#: Seconds that the current step has to end once the run is cancelled.
PATIENCE = 0.4
#: Seconds after which a wait is interrupted: a signal delivered to another thread does not end a wait.
_LOOK_SECONDS = 0.05

State = Literal["running", "cancelled", "done", "failed"]


class BackgroundRun(ABC):
    """Serves a run request in a background thread; holds no reference to the handle, whose end can end the thread.

    Args:
        step: the step to run.
        steps: how many it makes; None if unknown.
        done: records the steps made.
        recheck: how often the step is captured again, as for `Recheck`.
        generator: that the steps draw from; begins with the state of PyTorch's.
        listener: called with the share done and a status text; None for nothing.

    Attributes:
        name: of the step.
        stop: whether the run was asked to stop.
        error: of the run's own steps or the last loop.
        failure: of the run's own steps.
        ready: whether all that the thread does is done.
        progress: of the run.
        result: of the finished steps; None before there is a plan.
        shows: whether to show the progress of preparing for other steps within a loop.
    """

    #: Whether a batch in a loop may have fewer rows than the step's own.
    takes_smaller = False

    def __init__(
        self, step: Step, steps: int | None, done: StepLog[Any], recheck: int | None, generator: torch.Generator,
        listener: Listener | None,
    ) -> None:  # fmt: skip
        self._step, self._log, self._listener = step, done, listener
        self.name, self.steps = step.name, steps
        self.stop, self._ended = CancelToken(), Event()
        self._recheck = Recheck(step, recheck, self.stop)
        self.state: State = "running"
        self.error: BaseException | None = None
        self.failure: BaseException | None = None
        self.ready = self.shows = False
        self.progress = Progress()
        self._began = perf_counter()
        self._over: float | None = None
        self._torch_context = TorchContext()
        self._thread = Thread(target=copy_context().run, args=(self._run,), name="stowage run", daemon=True)
        self._ownership_lock = OwnershipLock(step, self.stop)
        self._before = self._ownership_lock.make()  # first: a run that ends meanwhile leaves its random numbers to this
        self._generator = generator
        self._draws = False
        with suppress(Cancelled):
            self._draw_as_pytorch(CancelToken.after(LONGEST_WAIT))

    @property
    def seconds(self) -> float:
        """Seconds from the start until now or the end."""
        over = self._over
        return (perf_counter() if over is None else over) - self._began

    @property
    def log(self) -> StepLog[Any]:
        """The steps made so far."""
        return self._log

    @property
    @abstractmethod
    def result(self) -> Any:
        """The result of the steps so far; None before there is a plan."""

    def start(self) -> None:
        """Start the thread."""
        try:
            self._thread.start()
        except RuntimeError as error:
            self._ownership_lock.end()
            raise StowageError("this program may begin no more threads; end some, or wait for other runs") from error

    def await_end(self, seconds: float | None) -> None:
        """Return when the thread has ended or the timeout expires; None waits for the end."""
        until = None if seconds is None else perf_counter() + seconds
        while not self._ended.wait(_LOOK_SECONDS):
            if until is not None and perf_counter() >= until:
                return
        self._thread.join()  # only now: Python considers a thread dead after an interrupted join

    def cancel(self, patience: float = PATIENCE) -> None:
        """Stop soon; the current step has `patience` seconds to end."""
        self.stop.cancel(patience)
        if self.state == "running":
            self.progress.doing = "stopping"

    def loop(self, batches: Iterable[Any]) -> Iterator[float]:
        """Make a step with each batch, in the calling thread; yields the losses."""
        step, log = self._step, self._log
        if not self.takes_smaller:
            refuse_smaller_last(batches)
        with self._looping():
            self._resume(batch_count(batches))
            with self._following() as followed:
                matcher, begun = Matcher(step, smaller=self.takes_smaller), len(log.seconds)
                for batch in batches:
                    refuse_meta_default()
                    if self.stop.requested:
                        break
                    leaves = matcher.leaves(batch)
                    difference = matcher.difference(batch)
                    names = matcher.plain_differences(batch) if difference else []
                    if names and unused_leaves(step, names, batch):
                        matcher.pass_by(names)
                        difference = ""
                    if difference or followed.changed or reading_changed(followed.graph.program, leaves):
                        with step.given_batch(batch), shown(self.progress) if self.shows else nullcontext():
                            followed.prepare()
                            matcher = matcher.renewed()  # another graph may use values that the last one did not
                        leaves = matcher.leaves(batch)
                    with step.given_batch(batch):
                        self._recheck.before(len(log.seconds) + 1)
                    with global_state_lock(self.stop.check):
                        self._generator.set_state(self._default().get_state())
                    followed.step(leaves, batch)
                    self._report_steps()
                    yield log.losses[-1]
                followed.finish()
                if not self.stop.requested and len(log.seconds) > begun and not followed.changed:
                    with step.given_batch(batch):
                        self._recheck.after(len(log.seconds), len(log.seconds) - begun)

    @abstractmethod
    def _following(self) -> AbstractContextManager[FollowedSteps]:
        """Get ready for steps in between which the caller may change the model, which includes each of them."""

    @abstractmethod
    def _work(self) -> None:
        """Prepare, and make the run's own steps."""

    @contextmanager
    def _looping(self) -> Iterator[None]:
        """Own the step during a loop in the calling thread, and record how it ends."""
        if not isinstance(self._step, TrainStep):
            raise StowageError("an InferenceStep has no losses to train by: make a TrainStep of the model")
        claim = OwnershipLock(self._step, self.stop)
        for other in claim.make(CancelToken()):
            other.ended.wait()
        try:
            refuse_meta_default()
            refuse_observers()
            yield
            self._end("cancelled" if self.stop.requested else "done")
        except GeneratorExit:
            self._end("done")
            raise
        except Cancelled:
            self._end("cancelled")
        except BaseException as error:
            self.error = error
            drop_traceback(error)
            self._end("failed")
            raise
        finally:
            claim.end()

    def _resume(self, more: int | None) -> None:
        """Go on with so many steps; None if that is not known."""
        self.state, self.error, self._over = "running", None, None
        self.steps = None if more is None else len(self._log.seconds) + more
        self._report_steps()

    def _build(self, model_bytes: int) -> None:
        """Make the model and the batch by the step's functions if necessary, and take ownership of them.

        Args:
            model_bytes: what they take.
        """
        if self._step.live is None:
            self._make_live(model_bytes)
        self._await_owners(self._ownership_lock.make(self.stop))

    def _await_owners(self, owners: list[OwnershipLock]) -> None:
        """Wait for the runs that own the step; where they end, this one goes on."""
        for owner in owners:
            owner.ended.wait()
        if owners or not self._draws:
            self._draw_as_pytorch(self.stop)

    def _draw_as_pytorch(self, stop: CancelToken) -> None:
        """Continue PyTorch's sequence of random numbers, which others borrow while they hold the global state lock."""
        with global_state_lock(stop.check):
            self._generator.set_state(self._default().get_state())
        self._draws = True

    def _default(self) -> torch.Generator:
        """The generator that eager PyTorch would draw from where the steps run."""
        return default_generator(self._generator.device.type)

    def _make_live(self, model_bytes: int) -> None:
        said, every = 0, max(1, model_bytes // 100)

        def note(made: int) -> None:
            nonlocal said
            if made // every > said:
                said = made // every
                self._report_progress(self.progress.share, f"building the model, {format_bytes(made)} so far")

        self._report_progress(self.progress.share, "building the model")
        self._torch_context.refuse_changes()
        with global_state_lock(self.stop.check):
            interruptibly(lambda: self._step.materialize(note), self.stop)

    @contextmanager
    def _drawing_for_all(self) -> Iterator[None]:
        """Leave PyTorch's generator as the run's is after the block, unless other code draws from it or seeds it."""
        begun = self._generator.get_state()
        try:
            yield
        finally:
            with global_state_lock():
                if torch.equal(self._default().get_state(), begun):
                    self._default().set_state(self._generator.get_state())

    def _end(self, state: State) -> None:
        self._over = perf_counter()
        doing = {"cancelled": "stopped", "done": "done", "failed": "failed"}[state]
        self.progress(1.0 if state == "done" else self.progress.share, doing)
        self.state = state

    def _report_progress(self, share: float, doing: str) -> None:
        self.progress(share, "" if self.stop.requested else doing)
        if self._listener is not None:
            self._listener(share, doing)

    def _report_steps(self) -> None:
        made, steps = len(self._log.seconds), self.steps
        doing = f"step {made + 1}" if steps is None else f"step {min(made + 1, steps)} of {steps}"
        self.progress(made / steps if steps else 0.0, "" if self.stop.requested else doing)

    def _run(self) -> None:
        state: State = "done"
        try:
            self._await_owners(self._before)
            with self._torch_context.entered():
                self._work()
                self._report_progress(1.0, "done")
            self.ready = True
        except Cancelled:
            state = "cancelled"
        except BaseException as error:
            self.error = self.failure = error
            drop_traceback(error)
            state = "failed"
        self._before = []
        self._end(state)
        self._ownership_lock.end()
        self._ended.set()


def drop_traceback(error: BaseException | None) -> None:
    """Clear the frames of an error and its causes, so that it does not keep their locals in memory."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
