"""What a run leaves behind, however it ends: the last finished step, in the live model and in a generator's state."""

from __future__ import annotations

import torch

from planner.capture.step import Step
from planner.run.executor import Executor
from planner.run.interrupts import uninterrupted


class Kept:
    """The live model, brought up to date after every step: one that stops half way has overwritten what it began with.

    Args:
        step: whose tensors are written.
        generator: what the run's steps draw from.

    Attributes:
        drawn: the state of the generator after the last finished step.
    """

    def __init__(self, step: Step, generator: torch.Generator) -> None:
        step.complete()
        self._step, self._live, self._generator = step, step.state(), generator
        self.drawn = generator.get_state()
        self._steps = 0

    def keep(self, executor: Executor) -> None:
        """Write a finished step back, whole whatever interrupts it."""
        with uninterrupted(), torch.no_grad():
            for key, value in executor.state().items():
                self._live[key].copy_(value)
            self.drawn = self._generator.get_state()
            self._steps += 1

    def advance(self) -> None:
        """The learning rates go on from the last finished step; not before the run ends, which looks ahead itself."""
        with uninterrupted():
            self._step.advance(self._steps)
            self._steps = 0
