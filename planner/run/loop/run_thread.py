"""The thread behind a `Run`; it holds no reference to the `Run`, so that dropping the latter can end the thread."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from statistics import median
from typing import Any

from torch import Tensor

from planner.capture import capture
from planner.errors import StowageError
from planner.global_state_lock import global_state_lock
from planner.graph import Graph
from planner.plan import SwapPlan
from planner.profile import forget_ops
from planner.progress import Listener
from planner.run.devices.registry import DEVICES
from planner.run.loop.background_run import BackgroundRun, State
from planner.run.loop.followed_steps import FollowedSteps
from planner.run.loop.monitor import Monitor
from planner.run.loop.result import BatchShapes, RunLog, RunResult
from planner.run.loop.step_loop import FIRST_STEPS, StepLoop, step_loop
from planner.run.prepare.eager_check_eligibility import why_unchecked
from planner.run.prepare.footprint import footprint, refuse_too_large
from planner.run.prepare.plan_run import RunRequest, plan_run
from planner.step import TrainStep

#: Share of the preparation in a run's progress, without a plan and with one; the rest is its steps.
_READY, _READY_WITH_PLAN = 0.5, 0.1
#: Number of graphs of a step that plans are kept for.
_MOST_PLANS = 8
#: A step this many times as fast as planned was planned by op times measured while the computer was busy.
_BUSY = 3.0
#: Number of captures of a step at which a warning is issued, as `torch.compile` does.
_MANY_CAPTURES = 8


class RunThread(BackgroundRun):
    """Serves a run request in a background thread; further steps may be made in any thread.

    Args:
        request: the request.
        listener: called with the share done and a status text; None for nothing.

    Attributes:
        graph, plan: for a batch of the size of the step's own; None before there are any.
    """

    takes_smaller = True

    def __init__(self, request: RunRequest, listener: Listener | None) -> None:
        self.done = RunLog()
        generator = DEVICES[request.device].generator()
        super().__init__(request.step, request.steps, self.done, request.recheck, generator, listener)
        self.asked = request
        self._plans: list[tuple[Graph, SwapPlan]] = []
        self._recaptures_itself = False  # whether the step itself requires the new capture
        self.graph: Graph | None = None
        self.plan: SwapPlan | None = None
        self._current: tuple[Graph, SwapPlan] | None = None
        self._own_shapes: BatchShapes | None = None  # once the step is live
        self._checked = self.done.checked
        self._ready = (_READY if request.plan is None else _READY_WITH_PLAN) if request.steps else 1.0
        self.monitor = Monitor(self._began)

    @property
    def result(self) -> RunResult | None:
        """The result of the steps so far; None before there is a plan."""
        plan, graph = self.plan, self.graph
        if plan is None or graph is None:
            return None
        return self.done.result(graph.name, self.asked.device, plan, self._recheck, self.monitor.most)

    @contextmanager
    def _following(self) -> Iterator[FollowedSteps]:
        with ExitStack() as stack:
            yield _PlannedSteps(self, stack)

    def _work(self) -> None:
        self._prepare(self._report_preparing)
        if self.asked.step.live is None:
            self._refuse_too_large()
        self._build(footprint(*self.prepared(), self.asked.step, checked=False).model)
        self._own_shapes = self._batch_shapes()
        if self.asked.steps:
            self._make_steps()

    def begin(self, stack: ExitStack, *, followed: bool) -> StepLoop:
        """Prepare for steps of the model as it is configured now."""
        if self._was_recaptured():
            self._prepare(self._report_compiling)
            self._report_steps()
        graph, plan = self.prepared()
        self._refuse_too_large()
        request = self._with_check(graph, plan, followed=followed)
        return stack.enter_context(
            step_loop(
                request,
                graph,
                plan,
                self._generator,
                self.done,
                self.monitor,
                self.stop.within_step(),
                followed=followed,
                smaller=self._has_smaller_batch(),
            )
        )

    def _refuse_too_large(self) -> None:
        refuse_too_large(*self.prepared(), self.asked.step, checked=self.asked.check is True)

    def begin_again(self, stack: ExitStack, running: StepLoop, *, followed: bool) -> StepLoop:
        """Prepare for the next step after a change."""
        if not self._was_recaptured():
            running.load()
            return running
        self._recaptures_itself = running.may_recapture
        stack.close()
        return self.begin(stack, followed=followed)

    def _prepare(self, listener: Listener) -> None:
        """Capture and plan."""
        within, asked = self._recaptures_itself and bool(self._plans), self.asked
        smaller = self._has_smaller_batch()
        if smaller and self.plan is not None:
            # few of the steps are made with such a batch: one in each epoch, as a rule
            asked = replace(asked, plan=None, budget=self.plan.budget_bytes, steps=1)
        current, plan = plan_run(asked, self.stop, listener, self._plans, within=within)
        self._current = current, plan
        if not smaller:
            self.graph, self.plan = current, plan
        if all(current is not graph for graph, _ in self._plans):
            self._count_capture()
        kept = [(graph, plan) for graph, plan in self._plans if graph is not current]
        self._plans = [(current, plan), *kept][:_MOST_PLANS]

    def _batch_shapes(self) -> BatchShapes:
        return tuple(tuple(leaf.shape) for leaf in self.asked.step.batch_leaves())

    def _has_smaller_batch(self) -> bool:
        """Whether the present batch is smaller than the step's own."""
        return self._own_shapes is not None and self._batch_shapes() != self._own_shapes

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

    def prepared(self) -> tuple[Graph, SwapPlan]:
        """The graph and the plan that steps are made by, once there are such."""
        assert self._current is not None
        return self._current

    def _was_recaptured(self) -> bool:
        """Capture the step; returns whether its graph is not the one that the plan is for."""
        with global_state_lock(self.stop.check):
            return capture(self.asked.step, device=self.asked.device, progress=False) is not self.prepared()[0]

    def _with_check(self, graph: Graph, plan: SwapPlan, *, followed: bool) -> RunRequest:
        """The request, with `check` off if its first steps cannot be compared with eager PyTorch."""
        request = self.asked
        if request.check == "first":
            if self.done.made_with[self._batch_shapes()] >= FIRST_STEPS:
                return request
            why = why_unchecked(graph, plan, request.step, followed=followed)
            if not self._has_smaller_batch():
                self._checked = self.done.checked = (
                    f"no step, because {why}" if why else f"the first {FIRST_STEPS} steps"
                )
            else:
                these = (
                    f"none with a smaller batch, because {why}"
                    if why
                    else f"the first {FIRST_STEPS} of each smaller batch"
                )
                self.done.checked = f"{self._checked}, and {these}"
            return replace(request, check=False) if why else request
        self.done.checked = "every step" if request.check else "no step"
        return request

    def _forget_busy_times(self) -> None:
        """Drop the op times of the plan if the steps show that they were measured while the computer was busy."""
        made = [timeline.seconds for timeline in self.done.timelines_by_plan()][1:]
        plan, asked = self.plan, self.asked
        graph = self.graph
        if asked.plan is not None or asked.stress or not made or plan is None or graph is None:
            return
        if self.done.measured_busy:
            return
        if median(made) * _BUSY < plan.predicted.seconds:
            # what cannot be written cannot be dropped either
            with suppress(StowageError), self._torch_context.entered():
                forget_ops(graph)
                self.done.measured_busy = True

    def _end(self, state: State) -> None:
        if state != "failed":
            self._forget_busy_times()
        super()._end(state)

    def _report_preparing(self, share: float, doing: str) -> None:
        self._report_progress(self._ready * share, doing)

    def _report_compiling(self, _: float, doing: str) -> None:
        smaller = " for a smaller batch" if self._has_smaller_batch() else ""
        self._report_progress(self.progress.share, f"{doing}{smaller}")

    def _make_steps(self) -> None:
        with self._drawing_for_all(), ExitStack() as stack:
            running = self.begin(stack, followed=False)
            leaves, steps = self.asked.step.batch_leaves(), self.asked.steps
            for number in range(steps):
                self._report_progress(self._ready + (1 - self._ready) * number / steps, f"step {number + 1} of {steps}")
                self.stop.check()
                if running.changed:
                    running = self.begin_again(stack, running, followed=False)
                self._recheck.before(len(self.done.seconds) + 1)
                running.step(leaves)


class _PlannedSteps:
    """Steps by the run's plan, or by another one once the step has changed; as `FollowedSteps`."""

    def __init__(self, thread: RunThread, stack: ExitStack) -> None:
        self._thread, self._stack = thread, stack
        self._running = thread.begin(stack, followed=True)

    @property
    def graph(self) -> Graph:
        return self._thread.prepared()[0]

    @property
    def changed(self) -> bool:
        return self._running.changed

    def prepare(self) -> None:
        self._running = self._thread.begin_again(self._stack, self._running, followed=True)

    def step(self, leaves: Sequence[Tensor], batch: Any) -> None:
        self._running.step(leaves, batch)

    def finish(self) -> None:
        """Nothing is left to do."""
