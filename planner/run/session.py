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
from planner.run.kept import Kept
from planner.run.monitor import Monitor
from planner.run.preparing import Asked
from planner.run.result import Done


class Session:
    """Makes steps, one after the other; made by `session`.

    Args:
        executor, kept, twin: what makes a step, what keeps it, what it is compared with.
        generator: what the steps draw from.
        done: where they are noted.
    """

    def __init__(
        self, executor: Executor, kept: Kept, twin: Twin | None, generator: torch.Generator, done: Done
    ) -> None:
        self._executor, self._kept, self._twin = executor, kept, twin
        self.generator, self._done = generator, done

    def step(self, leaves: list[torch.Tensor], batch: Any = None) -> None:
        """Make a step.

        Args:
            leaves: of the batch.
            batch: for the eager step beside it; the step's own if None.
        """
        number, before = len(self._done.seconds), self.generator.get_state()
        record = self._executor.step(leaves)
        self._kept.keep(self._executor)
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
) -> Iterator[Session]:
    """Get ready to make steps; afterwards the generator is where the last finished step left it.

    Args:
        asked: what is run and how.
        graph, plan: of it.
        generator: what the steps draw from.
        done: where they are noted.
        monitor: watches them; None for nobody.
        impatient: asked now and then during a step; it may raise, which abandons the step.

    Raises:
        StowageError: the plan does not fit on the device.
    """
    with sole(impatient):
        kept = Kept(asked.step, generator)  # which makes the live model
    try:
        with ExitStack() as stack:
            device = CpuDevice(plan.peak_bytes, plan.host_bytes, asked.link, impatient)
            stack.callback(device.close)
            executor = Executor(graph, plan, device, stress=asked.stress, generator=generator, impatient=impatient)
            executor.load(asked.step.state())
            twin = Twin(asked.step) if asked.check else None
            if monitor is not None:
                stack.enter_context(monitor.watching(executor.present, len(done.seconds)))
            yield Session(executor, kept, twin, generator, done)
    finally:
        generator.set_state(kept.drawn)
        kept.advance()
