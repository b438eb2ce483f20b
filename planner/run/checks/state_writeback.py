"""Write-back of finished steps to the live model and the generator, so that a run may end at any point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from planner.cancel import uninterrupted
from planner.global_state_lock import global_state_lock
from planner.guards import Container, Reach, undisturbed
from planner.program import Effects
from planner.run.executor.executor import Executor, StepRecord
from planner.step import Step, TrainStep
from planner.torch_private import default_generator


class StateWriteback:
    """Updates the live step after every step, because an unfinished step has overwritten the state it started from.

    Args:
        step: its live tensors are written.
        generator: the generator that the run's steps draw from.
        effects: what a step writes to Python variables; None for nothing.
        shared: whether PyTorch's default generator is kept at the state of `generator`.

    Attributes:
        reach: of the step, at the last call of `live`.
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

    @undisturbed()
    def live(self) -> dict[str, torch.Tensor]:
        """The live tensors by key, which later steps are written to."""
        self._step.complete()
        self.reach = self._step.reach(self._step.materialize().model)
        self._live = self._step.state(self.reach)
        if isinstance(self._step, TrainStep):
            self._trained = list(self._step.materialize().model.parameters())
        return self._live

    def keep(
        self,
        state: Mapping[str, torch.Tensor],
        left: Sequence[torch.Tensor] = (),
        steps: int = 1,
        *,
        skipped: bool = False,
    ) -> None:
        """Write finished steps back without interruption, and advance the learning-rate schedule.

        A plan keeps no gradients, and those of an earlier eager step are stale, so `grad` of parameters becomes None.
        An optimizer's state that no step has updated is not written to, since that it is untouched means something.

        Args:
            state: after these steps, by key.
            left: the tensors that the last of them writes to Python variables.
            steps: how many.
            skipped: whether all of them have updated nothing.
        """
        with uninterrupted(), torch.no_grad():
            for key, value in state.items():
                if key not in self._replaced and not (skipped and key.startswith("optimizer/")):
                    self._live[key].copy_(value)
            if self._effects is not None:
                self._live.update(self._effects.apply(self._live, state, left))
            self._forget_gradients()
            self._note_drawn()
            self._step.advance(steps)

    def note_variables(self) -> None:
        """Save the contents of the variables that the step changes, before eager PyTorch makes it on the live model."""
        self._variables = [(one.container, one.container.contents()) for one in self._written]

    def take_back_variables(self) -> None:
        """Restore the saved contents, so that the eager step's additions are not followed by those of the run."""
        for container, contents in self._variables:
            container.put(contents)

    def adopt(self, executor: Executor, record: StepRecord, drawn: torch.Tensor) -> None:
        """Account for a step that eager PyTorch has made on the live model.

        Its effects on Python variables are replaced by the plan's, as after unchecked steps: without gradients.

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
        """Reduce the optimizer's state to what eager PyTorch would keep."""
        with uninterrupted():
            self._step.settle(ended=True)

    def _forget_gradients(self) -> None:
        for parameter in self._trained:
            parameter.grad = None

    def _note_drawn(self) -> None:
        self.drawn = self._generator.get_state()
        if self._shared:
            with global_state_lock():
                default_generator(self._generator.device.type).set_state(self.drawn)
