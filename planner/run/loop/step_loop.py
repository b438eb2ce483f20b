"""The step loop: makes steps by a plan on a device, and updates the live model after each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from planner.cancel import CancelToken, uninterrupted
from planner.errors import StowageError, first_line
from planner.global_state_lock import global_state_lock
from planner.graph import Graph
from planner.guards import Reach, undisturbed
from planner.plan import SwapPlan
from planner.program import Effects
from planner.run.checks.eager_reference import EagerReference
from planner.run.checks.mutation_guard import MutationGuard
from planner.run.checks.state_writeback import StateWriteback
from planner.run.devices.registry import DEVICES
from planner.run.executor.executor import Executor, StepRecord
from planner.run.loop.interruptions import Interruptions
from planner.run.loop.monitor import Monitor
from planner.run.loop.result import RunLog
from planner.run.prepare.plan_run import RunRequest

#: Number of steps that are checked with `check="first"`.
FIRST_STEPS = 2


class StepLoop:
    """Makes steps, one after the other; created by `step_loop`.

    Args:
        request: the run request.
        executor, writeback: make a step, and write it back.
        generator: the generator that the steps draw from.
        done: records the steps.
        effects: what a step writes to Python variables; None for nothing.
        stop: checked periodically, also in another thread, to abandon a step.
        followed: whether the caller may change the model and the optimizer between two steps.
        smaller: whether the batches are smaller than the step's own.
        interruptions: what the executor asks whether to abandon a step.

    Attributes:
        may_recapture: whether the last step's effects may make the next step a different one.
    """

    def __init__(
        self,
        request: RunRequest,
        executor: Executor,
        writeback: StateWriteback,
        generator: torch.Generator,
        done: RunLog,
        effects: Effects | None,
        stop: CancelToken,
        *,
        followed: bool,
        smaller: bool,
        interruptions: Interruptions,
    ) -> None:
        self._interruptions = interruptions
        self._request, self._executor, self._writeback = request, executor, writeback
        self.generator, self._done, self._followed, self._smaller = generator, done, followed, smaller
        self._effects = effects
        self._mutation_guard: MutationGuard | None = None
        self._reference = (
            EagerReference(request.step, stop, shared=followed, device=request.device) if request.check else None
        )
        self.may_recapture = self._follows_schedule = False
        self._late = 0  # steps made that the live model does not include yet
        self._late_updates = 0  # those of them that have updated something
        self.load()

    @undisturbed()
    def load(self) -> None:
        """Load the present state of the live model and optimizer."""
        self._write_back_late_steps()
        self._executor.load(self._writeback.live())
        self.may_recapture = False
        self._follows_schedule = self._request.step.reads_schedule(self._writeback.reach)
        self._watch_state(self._writeback.reach)

    def close(self) -> None:
        """Let go of the device's memory."""
        self._write_back_late_steps()
        self._mutation_guard = None
        self._executor.close()

    @property
    def changed(self) -> bool:
        """Whether the next step may differ, because of the last step's effects or of changes from outside."""
        return self.may_recapture or (self._mutation_guard is not None and self._mutation_guard.changed())

    @undisturbed()
    def step(self, leaves: Sequence[torch.Tensor], batch: Any = None) -> None:
        """Make a step.

        Args:
            leaves: of the batch.
            batch: for the eager step that it is checked against; the step's own if None.

        Raises:
            StowageError: one of the first steps differs from eager PyTorch's; the live model then has eager PyTorch's
                numbers.
        """
        number, before = len(self._done.seconds), self.generator.get_state()
        shapes = tuple(tuple(leaf.shape) for leaf in leaves)
        made = self._done.made_with[shapes]
        checks = self._reference is not None and (self._request.check != "first" or made < FIRST_STEPS)
        if checks:
            self._write_back_late_steps()  # eager PyTorch begins with the live model
        record = self._executed(leaves)
        settles = self._effects is None or self._effects.settles
        self.may_recapture = self._follows_schedule or not settles
        if self._reference is not None and checks:
            self._check(self._reference, number, before, record, batch)
            self._done.made_with[shapes] += 1
            return
        with uninterrupted():
            if self._may_be_late:
                self._late += 1
                self._late_updates += not record.skipped
            else:
                self._writeback.keep(self._executor.state(), record.left, skipped=record.skipped)
            if self._effects is not None:
                self._watch_state()
            elif self._mutation_guard is not None:
                self._mutation_guard.noted()
            self._add(record)
            self._done.made_with[shapes] += 1

    @property
    def _may_be_late(self) -> bool:
        """Whether the live model need not include a step at once, since nobody is to look at it before the run ends."""
        device = self._executor.device
        return device.is_far and not self._followed and self._effects is None and not self._follows_schedule

    def _executed(self, leaves: Sequence[torch.Tensor]) -> StepRecord:
        """Make a step by the plan.

        Raises:
            StowageError: an op failed; steps that the live model does not include yet are lost.
        """
        if not self._may_be_late:
            return self._executor.step(leaves)
        try:
            with self._interruptions.held_off():
                return self._executor.step(leaves)
        except (StowageError, RuntimeError) as error:
            lost, self._late, self._late_updates = self._late, 0, 0
            made = len(self._done.seconds)
            if isinstance(error, StowageError) and not lost:
                raise
            told = str(error) if isinstance(error, StowageError) else f"step {made + 1} failed: {first_line(error)}"
            if lost:
                told += (
                    f"; the model is as it was after step {made - lost}, as steps on a GPU are written back together"
                )
            raise StowageError(told) from error

    def _write_back_late_steps(self) -> None:
        """Have the live model include all steps made."""
        steps, updates, self._late, self._late_updates = self._late, self._late_updates, 0, 0
        if steps:
            self._writeback.keep(self._executor.state(), steps=steps, skipped=not updates)

    def _add(self, record: StepRecord) -> None:
        self._done.launched_together = self._executor.launched_together
        self._done.add(record, self._executor, smaller=self._smaller)

    def _check(
        self, reference: EagerReference, number: int, before: torch.Tensor, record: StepRecord, batch: Any
    ) -> None:
        lost = frozenset() if self._effects is None else self._effects.lost
        state = {key: value for key, value in self._executor.state().items() if key not in lost}
        self._writeback.note_variables()
        try:
            check, drawn = reference.step(number, before, self.generator.get_state(), record.outputs, state, batch)
        except BaseException:
            self._write_back_unchecked(reference, record)
            raise
        with uninterrupted():
            drawn = drawn if self._request.check == "first" else self.generator.get_state()
            self._writeback.adopt(self._executor, record, drawn)
            self._watch_state(self._writeback.reach)
            self._add(record)
            self._done.add_check(check)
        if self._request.check == "first" and check.mismatches:
            _, _, first = check.mismatches[0].partition(": ")
            gpu = self._request.device != "cpu"
            repeatable = ", or has kernels that round otherwise each time (torch.use_deterministic_algorithms)" * gpu
            raise StowageError(
                f"step {number + 1} differs from eager PyTorch's in {len(check.mismatches)} of {check.compared} "
                f"tensors, the first of them {first}; the model has eager PyTorch's numbers. It depends on something "
                "that cannot be watched (a clock, a file, a loader that the loss asks): let that come in with the "
                f"batch{repeatable}; or it is a fault of the planner: then please report the model, and train it "
                "without a plan"
            )

    @uninterrupted()
    def _write_back_unchecked(self, reference: EagerReference, record: StepRecord) -> None:
        """Keep a step after its check was interrupted, during the eager step or during the comparison."""
        if reference.drawn is None:
            self._writeback.take_back_variables()
            self._writeback.keep(self._executor.state(), record.left, skipped=record.skipped)
        else:
            self._writeback.adopt(self._executor, record, reference.drawn)
        self._add(record)

    def _watch_state(self, reach: Reach | None = None) -> None:
        if self._followed:
            executor = self._executor
            self._mutation_guard = MutationGuard(self._request.step, executor.state(), executor.device.differs, reach)


@contextmanager
def step_loop(
    request: RunRequest,
    graph: Graph,
    plan: SwapPlan,
    generator: torch.Generator,
    done: RunLog,
    monitor: Monitor | None,
    stop: CancelToken,
    *,
    followed: bool = False,
    smaller: bool = False,
) -> Iterator[StepLoop]:
    """Prepare to make steps; on exit the generator has its state after the last finished step.

    Args:
        request: the run request.
        graph, plan: of the step.
        generator: the generator that the steps draw from.
        done: records the steps.
        monitor: samples the steps; None for no sampling.
        stop: checked periodically during a step, to abandon it.
        followed: whether the caller may, between two steps, draw from PyTorch's default generator, which is kept at the
            steps' state, and change the model and the optimizer.
        smaller: whether the batches are smaller than the step's own.

    Raises:
        StowageError: the plan does not fit on the device.
    """
    effects = graph.program.effects
    if effects is not None and graph.device != "cpu":
        raise StowageError(
            "the step writes tensors to Python variables, which would have to be on the host and on the GPU at once: "
            "run it on the CPU, or return them with the loss"
        )
    with global_state_lock(stop.check):
        writeback = StateWriteback(request.step, generator, effects, shared=followed)  # makes the live model
    try:
        with ExitStack() as stack:
            interruptions = Interruptions(stop)
            device = DEVICES[request.device](plan.peak_bytes, plan.host_bytes, request.link, interruptions.check)
            stack.callback(device.close)
            executor = Executor(
                graph,
                plan,
                device,
                graphs=True,
                stress=request.stress,
                generator=generator,
                check_cancelled=interruptions.check,
            )
            running = StepLoop(
                request, executor, writeback, generator, done, effects, stop, followed=followed, smaller=smaller,
                interruptions=interruptions,
            )  # fmt: skip
            stack.callback(running.close)  # before another plan takes its memory
            if monitor is not None:
                stack.enter_context(monitor.watching(executor.present, len(done.seconds), device.memory))
            yield running
    finally:
        generator.set_state(writeback.drawn)
        writeback.settle()
