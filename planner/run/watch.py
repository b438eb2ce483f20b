"""Seeing what a loop does to model and optimizer between two steps, cheaply enough to look before every one."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from itertools import starmap
from typing import Any

from torch import Tensor

from planner.capture.failures import unplannable
from planner.capture.guards import ContainerWatch, environment
from planner.capture.settings import optimizer_settings
from planner.capture.step import Step
from planner.capture.torch_private import has_gradient_hooks, has_step_hooks, marks
from planner.run.compare import same_bits

_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class Watch:
    """Notes how a live step is set up and what it holds, and says whether that is so still.

    PyTorch counts what is written to a tensor in place, except through `.data` and NumPy. So the bytes of all state are
    held against those that the run has, too.

    Args:
        step: live.
        state: by the keys of `Step.state()`, the run's own values.
    """

    def __init__(self, step: Step, state: Mapping[str, Tensor]) -> None:
        live = step.materialize()
        self._live, self._optimizer, self._state = live, live.optimizer, state
        reach = step.reach(live.model)
        self._containers = ContainerWatch(reach.containers, reach.objects)
        planned = [one for one in reach.tensors.values() if unplannable(one) is None and not one.is_meta]
        self._parameters = [(one, one.requires_grad) for one in planned]
        self._step = step
        self.note()

    def note(self) -> None:
        """What is there now is the run's own doing."""
        self._steps, self._environment = self._live.steps, environment()
        self._containers.note()
        self._groups, self._states = self._grouped(), self._kept()
        found = self._step.state()
        pairs = [(found[key], ours) for key, ours in self._state.items() if key in found]
        self._plain = [(live.data_ptr(), ours.data_ptr(), live.nbytes) for live, ours in pairs if _alike(live, ours)]
        self._odd = [(live, ours) for live, ours in pairs if not _alike(live, ours)]
        self._kept_alive = pairs
        known = {id(one): one for one, _ in self._parameters}
        self._tensors = list(known.values()) + [live for live, _ in pairs if id(live) not in known]
        self._marks = marks(self._tensors)

    def noted(self) -> None:
        """The run has written to the tensors that were there before, and to nothing else."""
        self._steps, self._marks = self._live.steps, marks(self._tensors)

    def changed(self) -> bool:
        """Whether anything is otherwise than it was noted, and not by the run."""
        return (
            self._live.steps != self._steps
            or environment() != self._environment
            or self._containers.changed()
            or marks(self._tensors) != self._marks
            or any(one.requires_grad != wanted or has_gradient_hooks(one) for one, wanted in self._parameters)
            or self._grouped() != self._groups
            or has_step_hooks(self._optimizer)
            or not _same_objects(self._kept(), self._states)
            or any(starmap(_memcmp, self._plain))  # where they lie is among the marks
            or not all(same_bits(live, ours) for live, ours in self._odd)
        )

    def _grouped(self) -> list[Any]:
        groups = [] if self._optimizer is None else self._optimizer.param_groups
        return [(optimizer_settings([(group, ())]), [id(one) for one in group["params"]]) for group in groups]

    def _kept(self) -> list[Any]:
        """The optimizer's states, each with what it holds."""
        states = [] if self._optimizer is None else self._optimizer.state.values()
        return [item for state in states for item in (state, *state.values())]


def _same_objects(these: list[Any], those: list[Any]) -> bool:
    return len(these) == len(those) and all(a is b for a, b in zip(these, those, strict=True))


def _alike(live: Tensor, ours: Tensor) -> bool:
    """Whether two tensors are laid out so that their bytes can be compared at the speed of memory."""
    same = live.dtype == ours.dtype and live.shape == ours.shape
    return same and live.is_contiguous() and ours.is_contiguous() and not live.is_conj() and not live.is_neg()
