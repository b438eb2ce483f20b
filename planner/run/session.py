"""Steps by a plan: a device with the step's state in it, and the live model brought up to date after each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from planner.capture.sole import sole
from planner.graph import Graph
from planner.memory import SwapPlan
from planner.run.compare import Twin
from planner.run.cpu import CpuDevice
from planner.run.executor import Executor
from planner.run.interrupts import uninterrupted
from planner.run.kept import Kept
from planner.run.monitor import Monitor
from planner.run.preparing import Asked
from planner.run.result import Done
from planner.run.watch import Watch


class Session:
    """Makes steps, one after the other; made by `session`.

    Args:
        asked: what is run and how.
        executor, kept: what makes a step, what keeps it.
        generator: what the steps draw from.
        done: where they are noted.
        followed: whether the model and the optimizer may be changed between two steps.
    """

    def __init__(
        self, asked: Asked, executor: Executor, kept: Kept, generator: torch.Generator, done: Done, *, followed: bool
    ) -> None:
        self._asked, self._executor, self._kept = asked, executor, kept
        self.generator, self._done, self._followed = generator, done, followed
        self._watch: Watch | None = None
        self._twin: Twin | None = None
        self.load()

    def load(self) -> None:
        """Start from the live model and optimizer as they are now."""
        self._executor.load(self._kept.live())
        self._twin = Twin(self._asked.step) if self._asked.check else None
        self._watch = Watch(self._asked.step, self._executor.state()) if self._followed else None

    @property
    def changed(self) -> bool:
        """Whether somebody else has changed the model or the optimizer since the last step."""
        return self._watch is not None and self._watch.changed()

    def step(self, leaves: list[torch.Tensor], batch: Any = None) -> None:
        """Make a step.

        Args:
            leaves: of the batch.
            batch: for the eager step beside it; the step's own if None.
        """
        number, before = len(self._done.seconds), self.generator.get_state()
        if self._twin is not None:
            self._twin.follow()
        record = self._executor.step(leaves)
        with uninterrupted():
            self._kept.keep(self._executor)
            if self._watch is not None:
                self._watch.note()
            self._done.add(record, self._executor.peak_bytes)
        if self._twin is not None:
            state = self._executor.state()
            self._done.add_check(self._twin.step(number, before, self._kept.drawn, record.outputs, state, batch))


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
    with sole(impatient):
        kept = Kept(asked.step, generator, shared=followed)  # which makes the live model
    try:
        with ExitStack() as stack:
            device = CpuDevice(plan.peak_bytes, plan.host_bytes, asked.link, impatient)
            stack.callback(device.close)
            executor = Executor(graph, plan, device, stress=asked.stress, generator=generator, impatient=impatient)
            running = Session(asked, executor, kept, generator, done, followed=followed)
            if monitor is not None:
                stack.enter_context(monitor.watching(executor.present, len(done.seconds)))
            yield running
    finally:
        generator.set_state(kept.drawn)
        kept.settle()
