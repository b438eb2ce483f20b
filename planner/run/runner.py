"""What works behind a `Run`: it holds no reference to it, so that dropping that can end this."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import ExitStack, nullcontext
from contextvars import copy_context
from dataclasses import replace
from threading import Event, Thread
from time import perf_counter
from typing import Any, Literal

import torch

from planner.capture import capture
from planner.capture.fakes import refuse_meta_default
from planner.capture.replay import reading_changed
from planner.capture.sole import sole
from planner.capture.training import TrainStep
from planner.capture.unused import unused_leaves
from planner.capture.watchers import refuse_watchers
from planner.errors import StowageError
from planner.graph import Graph
from planner.plan import SwapPlan
from planner.run.batches import Matcher
from planner.run.checking import why_unchecked
from planner.run.claims import Claim
from planner.run.footprint import footprint, refuse_too_large
from planner.run.interrupts import interruptibly
from planner.run.monitor import Monitor
from planner.run.preparing import Asked, prepare
from planner.run.recheck import Recheck
from planner.run.result import Done, RunResult
from planner.run.session import FIRST_STEPS, Session, session
from planner.run.stopping import PATIENCE, Cancelled, Stop
from planner.run.surroundings import Surroundings
from planner.units import format_bytes

#: A wait looks up so often: a signal may have reached another thread, which does not end a wait.
_LOOK_SECONDS = 0.05
#: What getting ready counts for in a run's progress beside its steps, without a plan and with one.
_READY, _READY_WITH_PLAN = 0.5, 0.1
#: Plans are kept for so many graphs of a step.
_MOST_PLANS = 8
#: Whose step has been captured so often is told, as by `torch.compile`.
_MANY_CAPTURES = 8


class Runner:
    """Does what is asked for in a thread, and more steps in any other.

    Args:
        asked: what to run.
        report: told the share done and what is being done.
    """

    def __init__(self, asked: Asked, report: Callable[[float, str], object]) -> None:
        self.asked, self._report = asked, report
        self._plans: list[tuple[Graph, SwapPlan]] = []
        self._own_doing = False  # whether the step itself has made the next one another
        self.name = asked.step.name
        self.stop, self.done = Stop(), Done()
        self._ended = Event()
        self.graph: Graph | None = None
        self.plan: SwapPlan | None = None
        self.state: Literal["running", "cancelled", "done", "failed"] = "running"
        self.error: BaseException | None = None  # of whatever came last
        self.failure: BaseException | None = None  # of the run's own steps
        self.ready = False
        self.doing, self.share = "starting", 0.0
        self._ready = (_READY if asked.plan is None else _READY_WITH_PLAN) if asked.steps else 1.0
        self.steps: int | None = asked.steps
        self._began = perf_counter()
        self._over: float | None = None
        self.monitor = Monitor(self._began)
        self._recheck = Recheck(asked.step, asked.recheck, self.stop)
        self._surroundings = Surroundings()
        self._thread = Thread(target=copy_context().run, args=(self._run,), name="stowage run", daemon=True)
        self._generator = torch.Generator()
        self._generator.set_state(torch.get_rng_state())
        self._claim = Claim(asked.step, self.stop)
        self._before = self._claim.make()

    @property
    def seconds(self) -> float:
        """Since it began, until it ended."""
        over = self._over
        return (perf_counter() if over is None else over) - self._began

    def start(self) -> None:
        """Begin."""
        try:
            self._thread.start()
        except RuntimeError as error:
            self._claim.end()
            raise StowageError("this program may begin no more threads; end some, or wait for other runs") from error

    def await_end(self, seconds: float | None) -> None:
        """Return when the thread has ended, or that many seconds are over."""
        until = None if seconds is None else perf_counter() + seconds
        while not self._ended.wait(_LOOK_SECONDS):
            if until is not None and perf_counter() >= until:
                return
        self._thread.join()  # not before: Python takes a thread for dead whose join was interrupted

    def cancel(self, patience: float = PATIENCE) -> None:
        """Stop soon; a step in the making is given so many seconds to end."""
        self.stop.ask(patience)
        if self.state == "running":
            self.doing = "stopping"

    def result(self) -> RunResult | None:
        """What the steps so far amount to; None before there is a plan."""
        plan, graph = self.plan, self.graph
        return None if plan is None or graph is None else self.done.result(graph.name, self.asked.device, plan)

    def loop(self, batches: Iterable[Any]) -> Iterator[float]:
        """A step with each batch, in this thread; yields the losses."""
        step = self.asked.step
        if not isinstance(step, TrainStep):
            raise StowageError("an InferenceStep has no losses to train by: make a TrainStep of the model")
        claim = Claim(step, self.stop)
        for other in claim.make(lambda: None):
            other.ended.wait()
        try:
            refuse_meta_default()
            refuse_watchers()
            self._go_on(_length(batches))
            with ExitStack() as stack:
                running = self._begin(stack, followed=True)
                matcher, begun = Matcher(step), len(self.done.seconds)
                for batch in batches:
                    refuse_meta_default()
                    if self.stop.asked:
                        break
                    leaves = matcher.leaves(batch)
                    difference = matcher.difference(batch)
                    names = matcher.plain_differences(batch) if difference else []
                    if names and unused_leaves(step, names, batch):
                        matcher.pass_by(names)
                        difference = ""
                    if difference or running.changed or reading_changed(self._graph().program, leaves):
                        with step.given_batch(batch):
                            running = self._renewed(stack, running, followed=True)
                            matcher = Matcher(step)  # another graph may use what the last one did not
                        leaves = matcher.leaves(batch)
                    self._look_again(batch)
                    with sole(self.stop.between_steps):
                        self._generator.set_state(torch.get_rng_state())
                    running.step(leaves, batch)
                    self._tell_steps()
                    yield self.done.losses[-1]
                if not self.stop.asked and len(self.done.seconds) > begun and not running.changed:
                    self._look_again_after(begun, batch)
            self._end("cancelled" if self.stop.asked else "done")
        except GeneratorExit:
            self._end("done")
            raise
        except Cancelled:
            self._end("cancelled")
        except BaseException as error:
            self.error = error
            _let_go(error)
            self._end("failed")
            raise
        finally:
            claim.end()

    def _begin(self, stack: ExitStack, *, followed: bool) -> Session:
        """Get ready for steps of the model as it is set up now."""
        if self._captured_anew():
            self._prepare(self._tell_words)
            self._tell_steps()
        graph, plan = self._graph(), self.plan
        assert plan is not None
        self._refuse_too_large()
        asked = self._checking(graph, plan, followed=followed)
        return stack.enter_context(
            session(
                asked, graph, plan, self._generator, self.done, self.monitor, self.stop.within_a_step, followed=followed
            )
        )

    def _refuse_too_large(self) -> None:
        refuse_too_large(self._graph(), self.plan, self.asked.step, checked=self.asked.check is True)

    def _build(self) -> None:
        """Have the step's functions make the model and the batch, where they have not, and claim what they made."""
        if self.asked.step.live is None:
            self._refuse_too_large()
            self._make_live()
        for claim in self._claim.make(self.stop.between_steps):
            claim.ended.wait()

    def _make_live(self) -> None:
        step = self.asked.step
        said, every = 0, max(1, footprint(self._graph(), self.plan, step, checked=False).model // 100)

        def note(made: int) -> None:
            nonlocal said
            if made // every > said:
                said = made // every
                self._tell(self.share, f"building the model, {format_bytes(made)} so far")

        self._tell(self.share, "building the model")
        self._surroundings.refuse_changes()
        with sole(self.stop.between_steps):
            interruptibly(lambda: step.materialize(note), self.stop.between_steps)

    def _renewed(self, stack: ExitStack, running: Session, *, followed: bool) -> Session:
        """Get ready for the next step, where anything has changed."""
        if not self._captured_anew():
            running.load()
            return running
        self._own_doing = running.unsettled
        stack.close()
        return self._begin(stack, followed=followed)

    def _prepare(self, report: Callable[[float, str], None]) -> None:
        """Capture and plan."""
        within = self._own_doing and bool(self._plans)
        self.graph, self.plan = prepare(self.asked, self.stop, report, self._plans, within=within)
        if all(self.graph is not graph for graph, _ in self._plans):
            self._count_capture()
        kept = [(graph, plan) for graph, plan in self._plans if graph is not self.graph]
        self._plans = [(self.graph, self.plan), *kept][:_MOST_PLANS]

    def _count_capture(self) -> None:
        self.done.captures += 1
        step = self.asked.step
        if self.done.captures == _MANY_CAPTURES and not (isinstance(step, TrainStep) and step.recapture):
            number, why = len(self.done.seconds) + 1, f", the last time because {step.change}" if step.change else ""
            warnings.warn(
                f"{step.name} has been captured {self.done.captures} times in {number} steps{why}: each capture holds "
                "the step up; a number that is kept in a tensor may change without one",
                stacklevel=2,
            )

    def _graph(self) -> Graph:
        assert self.graph is not None
        return self.graph

    def _captured_anew(self) -> bool:
        """Whether the plan is for another graph than the step has by now."""
        with sole(self.stop.between_steps):
            return capture(self.asked.step, progress=False) is not self.graph

    def _look_again(self, batch: Any = None) -> None:
        """Hold the step that comes against what was captured."""
        with nullcontext() if batch is None else self.asked.step.given_batch(batch):
            self._recheck.before(len(self.done.seconds) + 1)
        self._note_looks()

    def _look_again_after(self, begun: int, batch: Any) -> None:
        """Hold what another step would be against what was captured, at the end of a loop.

        Args:
            begun: steps before it.
            batch: the last one.
        """
        with self.asked.step.given_batch(batch):
            self._recheck.after(len(self.done.seconds), len(self.done.seconds) - begun)
        self._note_looks()

    def _note_looks(self) -> None:
        self.done.rechecks, self.done.recheck_seconds = self._recheck.looks, self._recheck.seconds

    def _checking(self, graph: Graph, plan: SwapPlan, *, followed: bool) -> Asked:
        """What is asked for, and whether its first steps can be held against eager PyTorch."""
        asked = self.asked
        if asked.check == "first":
            if len(self.done.seconds) >= FIRST_STEPS:
                return asked
            why = why_unchecked(graph, plan, asked.step, followed=followed)
            self.done.checked = f"no step, because {why}" if why else f"the first {FIRST_STEPS} steps"
            return replace(asked, check=False) if why else asked
        self.done.checked = "every step" if asked.check else "no step"
        return asked

    def _go_on(self, more: int | None) -> None:
        self.state, self.error, self._over = "running", None, None
        self.steps = None if more is None else len(self.done.seconds) + more
        self._tell_steps()

    def _end(self, state: Literal["cancelled", "done", "failed"]) -> None:
        self._over = perf_counter()
        self.doing = {"cancelled": "stopped", "done": "done", "failed": "failed"}[state]
        self.share = 1.0 if state == "done" else self.share
        self.state = state

    def _tell(self, share: float, doing: str) -> None:
        self.share = share
        if not self.stop.asked:
            self.doing = doing
        self._report(share, doing)

    def _tell_preparing(self, share: float, doing: str) -> None:
        self._tell(self._ready * share, doing)

    def _tell_words(self, _: float, doing: str) -> None:
        self._tell(self.share, doing)

    def _tell_steps(self) -> None:
        made, steps = len(self.done.seconds), self.steps
        self.share = made / steps if steps else 0.0
        if not self.stop.asked:
            self.doing = f"step {made + 1}" if steps is None else f"step {min(made + 1, steps)} of {steps}"

    def _run(self) -> None:
        try:
            for claim in self._before:
                claim.ended.wait()
                with sole(self.stop.between_steps):
                    self._generator.set_state(torch.get_rng_state())
            with self._surroundings.entered():
                self._prepare(self._tell_preparing)
                self._build()
                if self.asked.steps:
                    self._make_steps()
                self._tell(1.0, "done")
            self.ready = True
            state: Literal["cancelled", "done", "failed"] = "done"
        except Cancelled:
            state = "cancelled"
        except BaseException as error:
            self.error = self.failure = error
            _let_go(error)
            state = "failed"
        self._before = []
        self._end(state)
        self._claim.end()
        self._ended.set()

    def _make_steps(self) -> None:
        begun = self._generator.get_state()
        try:
            with ExitStack() as stack:
                running = self._begin(stack, followed=False)
                leaves, steps = self.asked.step.batch_leaves(), self.asked.steps
                for number in range(steps):
                    self._tell(self._ready + (1 - self._ready) * number / steps, f"step {number + 1} of {steps}")
                    self.stop.between_steps()
                    if running.changed:
                        running = self._renewed(stack, running, followed=False)
                    self._look_again()
                    running.step(leaves)
        finally:
            with sole():
                if torch.equal(
                    torch.get_rng_state(), begun
                ):  # else somebody has drawn or seeded, and goes on from there
                    torch.set_rng_state(self._generator.get_state())


def _length(batches: Iterable[Any]) -> int | None:
    """How many there are, where they can tell; a loader of an iterable data set has a length and cannot."""
    if not isinstance(batches, Sized):
        return None
    try:
        return len(batches)
    except (TypeError, NotImplementedError):
        return None


def _let_go(error: BaseException | None) -> None:
    """Keep what an error says and not the memory that its frames hold."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
