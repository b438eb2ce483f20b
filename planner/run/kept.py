"""What a run leaves behind, however it ends: the last finished step, in the live model and in PyTorch's generator."""

from __future__ import annotations

import torch

from planner.capture.step import Step
from planner.run.executor import Executor
from planner.run.interrupts import uninterrupted


class Kept:
    """The live model, brought up to date after every step: one that stops half way has overwritten what it began with.

    Args:
        step: whose tensors are written.
    """

    def __init__(self, step: Step) -> None:
        self._step, self._live = step, step.state()
        self._generator = torch.get_rng_state()
        self._steps = 0

    def keep(self, executor: Executor) -> None:
        """Write a finished step back, whole whatever interrupts it."""
        with uninterrupted(), torch.no_grad():
            for key, value in executor.state().items():
                self._live[key].copy_(value)
            self._generator = torch.get_rng_state()
            self._steps += 1

    def restore_generator(self) -> None:
        """PyTorch's generator goes on from the last finished step."""
        torch.set_rng_state(self._generator)

    def advance(self) -> None:
        """The learning rates go on from the last finished step; not before the run ends, which looks ahead itself."""
        with uninterrupted():
            self._step.advance(self._steps)
            self._steps = 0
