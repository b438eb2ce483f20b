"""Seeing what a loop does to model and optimizer between two steps, cheaply enough to look before every one."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from operator import is_
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from planner.capture.failures import unplannable
from planner.capture.guards import ContainerWatch, DictItems, Reach, environment, versions
from planner.capture.settings import optimizer_settings
from planner.capture.step import Step
from planner.capture.torch_private import GRADIENT_HOOKS, has_step_hooks, layout_guard, version
from planner.run.compare import same_bits
from planner.run.memcmp import Areas, places


class Watch:
    """Notes how a live step is set up and what it holds, and says whether that is so still.

    PyTorch counts what is written to a tensor in place, except through `.data` and NumPy. So the bytes of all state are
    held against those that the run has, too.

    Args:
        step: live.
        state: by the keys of `Step.state()`, the run's own values.
        reach: of the step as it is now, where that is known.
    """

    def __init__(self, step: Step, state: Mapping[str, Tensor], reach: Reach | None = None) -> None:
        live = step.materialize()
        self._live, self._optimizer, self._state = live, live.optimizer, state
        reach = self._reach = reach or step.reach(live.model)
        self._reached = [one for one in reach.tensors.values() if unplannable(one) is None and not one.is_meta]
        self._step = step
        self.note()

    def note(self) -> None:
        """What is there now is the run's own doing."""
        self._steps, self._environment = self._live.steps, environment()
        self._step_by = _step_of(self._optimizer)
        self._states: dict[Any, Any] = {} if self._optimizer is None else self._optimizer.state
        kept = [DictItems("", one) for one in (self._states, *self._states.values())]
        self._containers = ContainerWatch([*self._reach.containers, *kept], self._reach.objects)
        self._groups = Groups(self._optimizer)
        found = self._step.state(self._reach)
        pairs = [(found[key], ours) for key, ours in self._state.items() if key in found]
        plain = [(live, ours) for live, ours in pairs if _alike(live, ours)]
        self._plain = Areas([live for live, _ in plain], [ours for _, ours in plain])
        self._odd = [(live, ours) for live, ours in pairs if not _alike(live, ours)]
        reached = set(places(self._reached).tolist())
        self._tensors = self._reached + [live for live, _ in pairs if live.data_ptr() not in reached]
        self._places, self._laid_out = places(self._tensors).tobytes(), layout_guard(self._tensors)
        compared = {live.data_ptr() for live, _ in pairs}
        self._others = [one for one in self._reached if one.data_ptr() not in compared]
        self._versions = list(map(version, self._others))

    def noted(self) -> None:
        """The run has written to the tensors that were there before, and to nothing else."""
        self._steps = self._live.steps
        self._versions = list(map(version, self._others))

    def changed(self) -> bool:
        """Whether anything is otherwise than it was noted, and not by the run."""
        return (
            self._live.steps != self._steps
            or environment() != self._environment
            or self._containers.changed()
            or places(self._tensors).tobytes() != self._places
            or list(map(version, self._others)) != self._versions
            or not self._laid_out()
            or any(any(map(hooks, self._reached)) for hooks in GRADIENT_HOOKS)
            or self._groups.changed()
            or has_step_hooks(self._optimizer)
            or _step_of(self._optimizer) is not self._step_by
            or (self._optimizer is not None and self._optimizer.state is not self._states)
            or self._plain.differ()
            or not all(same_bits(live, ours) for live, ours in self._odd)
        )


class Groups:
    """An optimizer's parameter groups: which parameters are in them, and what decides which kernels are called.

    Args:
        optimizer: None for none.
    """

    def __init__(self, optimizer: Optimizer | None) -> None:
        self._optimizer = optimizer
        self._groups = self._now()
        self._versions = versions(self._groups)
        self._versions.note()
        self._settings, self._parameters = self._decisive(), self._members()

    def changed(self) -> bool:
        """Whether they are others; learning rates and the like may change."""
        groups = self._now()
        if len(groups) != len(self._groups) or not all(map(is_, groups, self._groups)):
            return True
        if self._versions.changed():
            if self._decisive() != self._settings:
                return True
            self._versions.note()
        now = self._members()
        return len(now) != len(self._parameters) or not all(map(is_, now, self._parameters))

    def _now(self) -> list[dict[str, Any]]:
        return [] if self._optimizer is None else list(self._optimizer.param_groups)

    def _decisive(self) -> list[Any]:
        return [(optimizer_settings([(group, ())]), len(group["params"])) for group in self._groups]

    def _members(self) -> list[Tensor]:
        return list(chain.from_iterable(group["params"] for group in self._groups))


def _step_of(optimizer: Optimizer | None) -> object:
    """What an optimizer has in the place of its class's own step, as a scheduler puts there."""
    return None if optimizer is None else vars(optimizer).get("step")


def _alike(live: Tensor, ours: Tensor) -> bool:
    """Whether two tensors are laid out so that their bytes can be compared at the speed of memory."""
    same = live.dtype == ours.dtype and live.shape == ours.shape
    return same and live.is_contiguous() and ours.is_contiguous() and not live.is_conj() and not live.is_neg()
