"""Detects changes to model and optimizer between two steps, cheaply enough to check before every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import is_
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from planner.capture import unplannable
from planner.guards import ContainerWatch, DictItems, Reach, environment, versions
from planner.run.checks.eager_reference import same_bits
from planner.step import Step, optimizer_guards, scaler_guards
from planner.torch_private import GRADIENT_HOOKS, has_step_hooks, layout_guard, version


class MutationGuard:
    """Records the configuration and the tensors of a live step, and reports whether they have changed.

    PyTorch counts in-place writes to a tensor, except those through `.data` and NumPy. So the bytes of all state are
    also compared with those of the run.

    Args:
        step: live.
        state: the run's own values, by the keys of `Step.state()`.
        differs: makes a check of whether any byte of some tensors differs from others', as a device does.
        reach: of the step as it is now, if known.
    """

    def __init__(
        self,
        step: Step,
        state: Mapping[str, Tensor],
        differs: Callable[[Sequence[Tensor], Sequence[Tensor]], Callable[[], bool]],
        reach: Reach | None = None,
    ) -> None:
        self._differs = differs
        live = step.materialize()
        self._live, self._optimizer, self._state = live, live.optimizer, state
        reach = self._reach = reach or step.reach(live.model)
        reached = {id(one): one for one in reach.tensors.values()}  # a tied one has several names
        self._reached = [one for one in reached.values() if unplannable(one) is None and not one.is_meta]
        self._step = step
        self.note()

    def note(self) -> None:
        """Record the present configuration and tensors as made by the run."""
        self._steps, self._environment = self._live.steps, environment()
        self._step_by = _step_of(self._optimizer)
        self._states: dict[Any, Any] = {} if self._optimizer is None else self._optimizer.state
        kept = [DictItems("", one) for one in (self._states, *self._states.values())]
        self._containers = ContainerWatch([*self._reach.containers, *kept], self._reach.objects)
        self._groups = OptimizerGroups(self._optimizer)
        self._scaling = scaler_guards(self._step.scaler)
        found = self._step.state(self._reach)
        pairs = [(found[key], ours) for key, ours in self._state.items() if key in found]
        plain = [(live, ours) for live, ours in pairs if _alike(live, ours)]
        self._plain_differ = self._differs([live for live, _ in plain], [ours for _, ours in plain])
        self._odd = [(live, ours) for live, ours in pairs if not _alike(live, ours)]
        reached = set(_addresses(self._reached))
        self._tensors = self._reached + [live for live, _ in pairs if live.data_ptr() not in reached]
        self._places, self._laid_out = _addresses(self._tensors), layout_guard(self._tensors)
        compared = {live.data_ptr() for live, _ in pairs}
        self._others = [one for one in self._reached if one.data_ptr() not in compared]
        self._versions = list(map(version, self._others))

    def noted(self) -> None:
        """Record that the run has written to the known tensors, and changed nothing else."""
        self._steps = self._live.steps
        self._versions = list(map(version, self._others))

    def changed(self) -> bool:
        """Whether anything other than the run has changed what was recorded."""
        return (
            self._live.steps != self._steps
            or environment() != self._environment
            or self._containers.changed()
            or _addresses(self._tensors) != self._places
            or list(map(version, self._others)) != self._versions
            or not self._laid_out()
            or any(any(map(hooks, self._reached)) for hooks in GRADIENT_HOOKS)
            or self._groups.changed()
            or scaler_guards(self._step.scaler) != self._scaling
            or has_step_hooks(self._optimizer)
            or _step_of(self._optimizer) is not self._step_by
            or (self._optimizer is not None and self._optimizer.state is not self._states)
            or self._plain_differ()
            or not all(same_bits(live, ours) for live, ours in self._odd)
        )


class OptimizerGroups:
    """An optimizer's parameter groups: their parameters, and the hyperparameters that decide which kernels are called.

    Args:
        optimizer: None if the step has none.
    """

    def __init__(self, optimizer: Optimizer | None) -> None:
        self._optimizer = optimizer
        self._groups = self._now()
        self._versions = versions(self._groups)
        self._versions.note()
        self._settings, self._parameters = self._decisive(), self._members()

    def changed(self) -> bool:
        """Whether the groups have changed; learning rates and similar numbers are ignored."""
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
        return [(optimizer_guards([(group, ())]), len(group["params"])) for group in self._groups]

    def _members(self) -> list[Tensor]:
        return list(chain.from_iterable(group["params"] for group in self._groups))


def _addresses(tensors: Sequence[Tensor]) -> list[int]:
    return list(map(Tensor.data_ptr, tensors))


def _step_of(optimizer: Optimizer | None) -> object:
    """The attribute that shadows the `step` of the optimizer's class, as a scheduler sets it; None without one."""
    return None if optimizer is None else vars(optimizer).get("step")


def _alike(live: Tensor, ours: Tensor) -> bool:
    """Whether two tensors are laid out so that their bytes can be compared at memory bandwidth."""
    same = live.dtype == ours.dtype and live.shape == ours.shape
    return same and live.is_contiguous() and ours.is_contiguous() and not live.is_conj() and not live.is_neg()
