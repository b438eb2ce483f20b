"""What a run leaves behind, however it ends: the last finished step, in the live model and in a generator's state."""

from __future__ import annotations

import torch

from planner.capture.sole import sole
from planner.capture.step import Step
from planner.run.executor import Executor
from planner.run.interrupts import uninterrupted


class Kept:
    """The live step, brought up to date after every step: one that stops half way has overwritten what it began with.

    Args:
        step: whose tensors are written.
        generator: what the run's steps draw from.
        shared: whether PyTorch's default generator follows it.

    Attributes:
        drawn: the state of the generator after the last finished step.
    """

    def __init__(self, step: Step, generator: torch.Generator, *, shared: bool) -> None:
        self._step, self._generator, self._shared = step, generator, shared
        self.drawn = generator.get_state()
        self._live = self.live()

    def live(self) -> dict[str, torch.Tensor]:
        """The live tensors, as they are now and will be written from now on."""
        self._step.complete()
        self._live = self._step.state()
        return self._live

    def keep(self, executor: Executor) -> None:
        """Write a finished step back, whole whatever interrupts it; the learning rates go on from there."""
        with uninterrupted(), torch.no_grad():
            for key, value in executor.state().items():
                self._live[key].copy_(value)
            self.drawn = self._generator.get_state()
            if self._shared:
                with sole():
                    torch.set_rng_state(self.drawn)
            self._step.advance(1)

    def settle(self) -> None:
        """The optimizer keeps what eager PyTorch would."""
        with uninterrupted():
            self._step.settle()
