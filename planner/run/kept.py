"""What a run leaves behind, however it ends: the last finished step, in the live model and in a generator's state."""

from __future__ import annotations

import torch

from planner.capture.effects import Effects
from planner.capture.guards import Container, Reach
from planner.capture.sole import sole
from planner.capture.step import Step
from planner.capture.training import TrainStep
from planner.run.executor import Executor, StepRecord
from planner.run.interrupts import uninterrupted


class Kept:
    """The live step, brought up to date after every step: one that stops half way has overwritten what it began with.

    Args:
        step: whose tensors are written.
        generator: what the run's steps draw from.
        effects: what a step leaves in Python's variables; None for nothing.
        shared: whether PyTorch's default generator follows it.

    Attributes:
        reach: of the step, when its live tensors were last asked for.
        drawn: the state of the generator after the last finished step.
    """

    def __init__(self, step: Step, generator: torch.Generator, effects: Effects | None, *, shared: bool) -> None:
        self._step, self._generator, self._shared = step, generator, shared
        self._effects = effects
        self._written = effects.written if effects is not None else ()
        self._variables: list[tuple[Container, tuple[object, ...]]] = []
        self._replaced = effects.replaced() if effects is not None else set()
        self.drawn = generator.get_state()
        self._trained: list[torch.nn.Parameter] = []
        self.reach: Reach | None = None
        self._live: dict[str, torch.Tensor] = {}
        step.materialize()

    def live(self) -> dict[str, torch.Tensor]:
        """The live tensors, as they are now and will be written from now on."""
        self._step.complete()
        self.reach = self._step.reach(self._step.materialize().model)
        self._live = self._step.state(self.reach)
        if isinstance(self._step, TrainStep):
            self._trained = list(self._step.materialize().model.parameters())
        return self._live

    def keep(self, executor: Executor, record: StepRecord) -> None:
        """Write a finished step back, whole whatever interrupts it; the learning rates go on from there.

        It has kept no gradients, and those of an earlier eager step are not its own: `grad` of parameters becomes None.
        """
        with uninterrupted(), torch.no_grad():
            state = executor.state()
            for key, value in state.items():
                if key not in self._replaced:
                    self._live[key].copy_(value)
            if self._effects is not None:
                self._live.update(self._effects.apply(self._live, state, record.left))
            self._forget_gradients()
            self._note_drawn()
            self._step.advance(1)

    def note_variables(self) -> None:
        """Before eager PyTorch makes the step on the live model: what is in the variables that the step changes."""
        self._variables = [(one.container, one.container.contents()) for one in self._written]

    def take_back_variables(self) -> None:
        """Put back what was there, so that nothing that the step adds is there twice, once from eager PyTorch."""
        for container, contents in self._variables:
            container.put(contents)

    def adopt(self, executor: Executor, record: StepRecord, drawn: torch.Tensor) -> None:
        """Take note of a step that eager PyTorch has made on the live model.

        What it has left in Python's variables is left anew, as after steps that are not checked: without gradients.

        Args:
            executor, record: of the same step by the plan.
            drawn: the state of the generator after it.
        """
        if self._effects is not None:
            with torch.no_grad():
                self.take_back_variables()
                self._effects.apply(self._live, executor.state(), record.left)
        self._generator.set_state(drawn)
        self._forget_gradients()
        self._note_drawn()
        self.live()

    def settle(self) -> None:
        """The optimizer keeps what eager PyTorch would."""
        with uninterrupted():
            self._step.settle()

    def _forget_gradients(self) -> None:
        for parameter in self._trained:
            parameter.grad = None

    def _note_drawn(self) -> None:
        self.drawn = self._generator.get_state()
        if self._shared:
            with sole():
                torch.set_rng_state(self.drawn)
