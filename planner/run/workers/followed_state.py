"""Steps on workers after each of which the live model has their state, and before each of which it may be changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from planner.cancel import uninterrupted
from planner.global_state_lock import global_state_lock
from planner.guards import undisturbed
from planner.run.checks.mutation_guard import MutationGuard
from planner.run.checks.state_writeback import StateWriteback
from planner.run.devices.cpu import CpuDevice
from planner.run.workers.checkpoints import Checkpoints
from planner.run.workers.plans.worker_plans import WorkerPlans
from planner.run.workers.team import Team
from planner.run.workers.workers_log import WorkersLog
from planner.step import Step

#: Makes workers ready for their plans, with a state.
GetReady = Callable[[WorkerPlans, dict[str, Tensor]], Team]


class FollowedState:
    """Makes steps, brings the state back after each, and watches what is done with it in between.

    Args:
        step: with its live model.
        generator: that the steps draw from.
    """

    def __init__(self, step: Step, generator: torch.Generator) -> None:
        self._step, self._generator = step, generator
        self._writeback: StateWriteback | None = None
        self.planned: WorkerPlans
        self._team: Team
        self._state: dict[str, Tensor] = {}
        self._guard: MutationGuard
        self._restless = False

    @property
    def changed(self) -> bool:
        """Whether the next step may be another one, because of the last one's effects or of changes from outside."""
        return self._restless or self._guard.changed()

    @undisturbed()
    def load(self, get_ready: GetReady, planned: WorkerPlans) -> None:
        """Begin with the model as it is now.

        Args:
            get_ready: as the type says.
            planned: what the workers compute.
        """
        effects = planned.graph.program.effects
        self._restless, self.planned = False, planned
        with global_state_lock():
            self._writeback = StateWriteback(self._step, self._generator, effects, shared=True)
        live = self._writeback.live()
        self._team = get_ready(planned, live)
        self._state = {key: value.clone() for key, value in live.items()}
        self._guard = MutationGuard(self._step, self._state, CpuDevice.differs, self._writeback.reach)

    @undisturbed()
    def step(self, leaves: Sequence[Tensor], done: WorkersLog, checkpoints: Checkpoints | None) -> None:
        """Make a step and bring its state back.

        Args:
            leaves: of the batch.
            done: records the step.
            checkpoints: to write; None for none.
        """
        assert self._writeback is not None
        effects = self.planned.graph.program.effects
        made = self._team.step(self._generator.get_state(), leaves)
        brought = self._team.bring(self._state)
        with uninterrupted():
            self._generator.set_state(made.drawn)
            self._writeback.keep({key: self._state[key] for key in brought})
            if effects is None:
                self._guard.noted()
            else:
                self._restless = not effects.settles
                self._guard = MutationGuard(self._step, self._state, CpuDevice.differs)
            done.add(made.record, made.outputs)
        if checkpoints is not None:
            checkpoints.after_step(self._team, self._state, 0, made.drawn)

    def checkpoint(self, checkpoints: Checkpoints) -> None:
        """Write a checkpoint of the last step, if that is not written yet."""
        checkpoints.write(self._team, self._state, 0, self._generator.get_state())

    def end(self) -> None:
        """Leave the generator and the optimizer's state as eager PyTorch would."""
        if self._writeback is not None:
            self._writeback.settle()
