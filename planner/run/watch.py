"""Seeing what a loop does to model and optimizer between two steps, cheaply enough to look before every one."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from planner.capture.settings import attributes, optimizer_settings
from planner.capture.step import Step
from planner.capture.torch_private import has_gradient_hooks, has_step_hooks, marks, tables
from planner.run.compare import same_bits

_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


@dataclass(frozen=True, slots=True)
class _Module:
    """How a module was set up; `sizes` of the tables in which it keeps tensors and attributes."""

    module: nn.Module
    training: bool
    attributes: Mapping[str, object]
    sizes: tuple[int, ...]

    def changed(self) -> bool:
        own = tables(self.module)
        return (
            self.module.training is not self.training
            or tuple(map(len, own)) != self.sizes
            or any(name not in own[2] or own[2][name] != value for name, value in self.attributes.items())
        )


class Watch:
    """Notes how a live step is set up and what it holds, and says whether that is so still.

    PyTorch counts what is written to a tensor in place, except through `.data` and NumPy. So the bytes of parameters
    are held against those that the run has, too.

    Args:
        step: live.
        state: by the keys of `Step.state()`, the run's own values.
    """

    def __init__(self, step: Step, state: Mapping[str, Tensor]) -> None:
        live = step.materialize()
        self._live, self._optimizer = live, live.optimizer
        self._modules = [
            _Module(each, each.training, dict(attributes(each)), tuple(map(len, tables(each))))
            for each in live.model.modules()
        ]
        self._parameters = [(one, one.requires_grad) for one in live.model.parameters()]
        self._groups, self._states = self._grouped(), self._kept()
        all_tables = [table for module in live.model.modules() for table in tables(module)] + self._states
        self._places = [
            (table, key, tensor) for table in all_tables for key, tensor in table.items() if isinstance(tensor, Tensor)
        ]
        self._tensors = [tensor for _, _, tensor in self._places]
        named = ((f"model/{name}", parameter) for name, parameter in live.model.named_parameters())
        self._pairs = [(parameter.detach(), state[key]) for key, parameter in named if key in state]
        self.note()

    def note(self) -> None:
        """What the tensors are now is the run's own doing."""
        self._steps, self._marks = self._live.steps, marks(self._tensors)

    def changed(self) -> bool:
        """Whether anything is otherwise than it was noted, and not by the run."""
        return (
            self._live.steps != self._steps
            or any(table.get(key) is not tensor for table, key, tensor in self._places)
            or marks(self._tensors) != self._marks
            or any(one.requires_grad != wanted or has_gradient_hooks(one) for one, wanted in self._parameters)
            or any(module.changed() for module in self._modules)
            or [each.module for each in self._modules] != list(self._live.model.modules())
            or self._grouped() != self._groups
            or has_step_hooks(self._optimizer)
            or not _same_objects(self._kept(), self._states)
            or not all(_same(live, ours) for live, ours in self._pairs)
        )

    def _grouped(self) -> list[Any]:
        groups = [] if self._optimizer is None else self._optimizer.param_groups
        return [(optimizer_settings([(group, ())]), [id(one) for one in group["params"]]) for group in groups]

    def _kept(self) -> list[Any]:
        return [] if self._optimizer is None else list(self._optimizer.state.values())


def _same_objects(these: list[Any], those: list[Any]) -> bool:
    return len(these) == len(those) and all(a is b for a, b in zip(these, those, strict=True))


def _same(live: Tensor, ours: Tensor) -> bool:
    """Whether two tensors have the same bits, seen at the speed of memory where they are laid out alike."""
    if not live.is_contiguous() or not ours.is_contiguous() or live.dtype != ours.dtype or live.shape != ours.shape:
        return same_bits(live, ours)
    return not _memcmp(live.data_ptr(), ours.data_ptr(), live.numel() * live.element_size())
