"""Steps by a plan: a device with the step's state in it, and the live model brought up to date after each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from planner.capture.effects import Effects
from planner.capture.guards import Reach
from planner.capture.sole import sole
from planner.capture.undisturbed import undisturbed
from planner.errors import StowageError
from planner.graph import Graph
from planner.plan import SwapPlan
from planner.run.compare import EagerReference
from planner.run.cpu import CpuDevice
from planner.run.executor import Executor, StepRecord
from planner.run.interrupts import uninterrupted
from planner.run.kept import Kept
from planner.run.monitor import Monitor
from planner.run.preparing import Asked
from planner.run.result import Done
from planner.run.watch import Watch

#: Of a run that is not asked to check all of its steps, so many are checked.
FIRST_STEPS = 2


class Session:
    """Makes steps, one after the other; made by `session`.

    Args:
        asked: what is run and how.
        executor, kept: what makes a step, what keeps it.
        generator: what the steps draw from.
        done: where they are noted.
        effects: what a step leaves in Python's variables; None for nothing.
        impatient: asked now and then, also by another thread; it may raise Cancelled, which abandons a step.
        followed: whether the model and the optimizer may be changed between two steps.

    Attributes:
        unsettled: whether the last step has left something behind that makes the next one another.
    """

    def __init__(
        self,
        asked: Asked,
        executor: Executor,
        kept: Kept,
        generator: torch.Generator,
        done: Done,
        effects: Effects | None,
        impatient: Callable[[], object],
        *,
        followed: bool,
    ) -> None:
        self._asked, self._executor, self._kept = asked, executor, kept
        self.generator, self._done, self._followed = generator, done, followed
        self._effects = effects
        self._watch: Watch | None = None
        self._reference = EagerReference(asked.step, impatient, shared=followed) if asked.check else None
        self.unsettled = False
        self.load()

    @undisturbed()
    def load(self) -> None:
        """Start from the live model and optimizer as they are now."""
        self._executor.load(self._kept.live())
        self.unsettled = False
        self._look(self._kept.reach)

    @property
    def changed(self) -> bool:
        """Whether the next step may be another: because of what a step left behind, or of what somebody else did."""
        return self.unsettled or (self._watch is not None and self._watch.changed())

    @undisturbed()
    def step(self, leaves: list[torch.Tensor], batch: Any = None) -> None:
        """Make a step.

        Args:
            leaves: of the batch.
            batch: for the eager step beside it; the step's own if None.

        Raises:
            StowageError: one of the first steps differs from eager PyTorch's, whose numbers the live model then has.
        """
        number, before = len(self._done.seconds), self.generator.get_state()
        record = self._executor.step(leaves)
        self.unsettled = self._effects is not None and not self._effects.settles
        if self._reference is not None and (self._asked.check != "first" or number < FIRST_STEPS):
            self._check(self._reference, number, before, record, batch)
            return
        with uninterrupted():
            self._kept.keep(self._executor, record)
            if self._effects is not None:
                self._look()
            elif self._watch is not None:
                self._watch.noted()
            self._done.add(record, self._executor.peak_bytes)

    def _check(
        self, reference: EagerReference, number: int, before: torch.Tensor, record: StepRecord, batch: Any
    ) -> None:
        lost = frozenset() if self._effects is None else self._effects.lost
        state = {key: value for key, value in self._executor.state().items() if key not in lost}
        self._kept.note_variables()
        try:
            check, drawn = reference.step(number, before, self.generator.get_state(), record.outputs, state, batch)
        except BaseException:
            self._keep_unchecked(reference, record)
            raise
        with uninterrupted():
            drawn = drawn if self._asked.check == "first" else self.generator.get_state()
            self._kept.adopt(self._executor, record, drawn)
            self._look(self._kept.reach)
            self._done.add(record, self._executor.peak_bytes)
            self._done.add_check(check)
        if self._asked.check == "first" and check.mismatches:
            _, _, first = check.mismatches[0].partition(": ")
            raise StowageError(
                f"step {number + 1} differs from eager PyTorch's in {len(check.mismatches)} of {check.compared} "
                f"tensors, the first of them {first}; the model has eager PyTorch's numbers. It depends on something "
                "that cannot be watched (a clock, a file, a loader that the loss asks): let that come in with the "
                "batch; or it is a fault of the planner: then please report the model, and train it without a plan"
            )

    @uninterrupted()
    def _keep_unchecked(self, reference: EagerReference, record: StepRecord) -> None:
        """Keep a step where eager PyTorch's was left half done, or was made and is not compared to its end."""
        if reference.drawn is None:
            self._kept.take_back_variables()
            self._kept.keep(self._executor, record)
        else:
            self._kept.adopt(self._executor, record, reference.drawn)
        self._done.add(record, self._executor.peak_bytes)

    def _look(self, reach: Reach | None = None) -> None:
        self._watch = Watch(self._asked.step, self._executor.state(), reach) if self._followed else None


@contextmanager
def session(
    asked: Asked,
    graph: Graph,
    plan: SwapPlan,
    generator: torch.Generator,
    done: Done,
    monitor: Monitor | None,
    impatient: Callable[[], object],
    *,
    followed: bool = False,
) -> Iterator[Session]:
    """Get ready to make steps; afterwards the generator is where the last finished step left it.

    Args:
        asked: what is run and how.
        graph, plan: of it.
        generator: what the steps draw from.
        done: where they are noted.
        monitor: watches them; None for nobody.
        impatient: asked now and then during a step; it may raise, which abandons the step.
        followed: whether others may draw from PyTorch's default generator, which is kept where the steps left it, and
            change the model and the optimizer between two steps.

    Raises:
        StowageError: the plan does not fit on the device.
    """
    effects = graph.program.effects
    with sole(impatient):
        kept = Kept(asked.step, generator, effects, shared=followed)  # which makes the live model
    try:
        with ExitStack() as stack:
            device = CpuDevice(plan.peak_bytes, plan.host_bytes, asked.link, impatient)
            stack.callback(device.close)
            executor = Executor(graph, plan, device, stress=asked.stress, generator=generator, impatient=impatient)
            running = Session(asked, executor, kept, generator, done, effects, impatient, followed=followed)
            if monitor is not None:
                stack.enter_context(monitor.watching(executor.present, len(done.seconds)))
            yield running
    finally:
        generator.set_state(kept.drawn)
        kept.settle()
