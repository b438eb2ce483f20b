"""Steps on workers after each of which the live model has their state, and before each of which it may be changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from planner.cancel import uninterrupted
from planner.global_state_lock import global_state_lock
from planner.graph import Graph
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
    """Makes steps, brings the state back after each, and watches what is done with it; as `FollowedSteps`.

    Args:
        step: with its live model.
        generator: that the steps draw from.
        plan: captures and plans the step as it is now.
        get_ready: as the type says.
        done: records the steps.
        checkpoints: to write; None for none.
    """

    def __init__(
        self, step: Step, generator: torch.Generator, plan: Callable[[], WorkerPlans], get_ready: GetReady,
        done: WorkersLog, checkpoints: Checkpoints | None,
    ) -> None:  # fmt: skip
        self._step, self._generator, self._plan, self._get_ready = step, generator, plan, get_ready
        self._done, self._checkpoints = done, checkpoints
        self._writeback: StateWriteback | None = None
        self._planned: WorkerPlans
        self._team: Team
        self._state: dict[str, Tensor] = {}
        self._guard: MutationGuard
        self._restless = False

    @property
    def graph(self) -> Graph:
        """The graph that steps are made by."""
        return self._planned.graph

    @property
    def changed(self) -> bool:
        """Whether the next step may be another one, because of the last one's effects or of changes from outside."""
        return self._restless or self._guard.changed()

    def prepare(self) -> None:
        """Go on with the model as it is now."""
        self._load(self._plan())

    @undisturbed()
    def _load(self, planned: WorkerPlans) -> None:
        effects = planned.graph.program.effects
        self._restless, self._planned = False, planned
        with global_state_lock():
            self._writeback = StateWriteback(self._step, self._generator, effects, shared=True)
        live = self._writeback.live()
        self._team = self._get_ready(planned, live)
        self._state = {key: value.clone() for key, value in live.items()}
        self._guard = MutationGuard(self._step, self._state, CpuDevice.differs, self._writeback.reach)

    @undisturbed()
    def step(self, leaves: Sequence[Tensor], _batch: Any) -> None:
        """Make a step with the tensors of a batch, and bring its state back."""
        assert self._writeback is not None
        effects = self._planned.graph.program.effects
        made = self._team.step(self._generator.get_state(), leaves)
        brought = self._team.bring(self._state)
        with uninterrupted():
            self._generator.set_state(made.drawn)
            self._writeback.keep({key: self._state[key] for key in brought}, skipped=made.skipped)
            if effects is None:
                self._guard.noted()
            else:
                self._restless = not effects.settles
                self._guard = MutationGuard(self._step, self._state, CpuDevice.differs)
            self._done.add(made.record, made.outputs, skipped=made.skipped)
        if self._checkpoints is not None:
            self._checkpoints.after_step(self._team, self._state, 0, made.drawn)

    def finish(self) -> None:
        """Write a checkpoint of the last step, if that is not written yet."""
        if self._checkpoints is not None:
            self._checkpoints.write(self._team, self._state, 0, self._generator.get_state())

    def end(self) -> None:
        """Leave the generator and the optimizer's state as eager PyTorch would."""
        if self._writeback is not None:
            self._writeback.settle()
