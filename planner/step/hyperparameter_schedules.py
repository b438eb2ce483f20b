"""The numbers of an optimizer that change from step to step, computed ahead."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler

from planner.program import ScalarRef
from planner.step import optimizers
from planner.step.module_tensors import ModuleTensor, module_tensors
from planner.step.optimizer_state import untouched
from planner.step.step import Step

#: By reference: the parameter group, the parameter whose step count is used, and the quantity.
References = Mapping[ScalarRef, tuple[int, str, str]]


class Scalars:
    """The numbers behind the references of a program: called with 0, 1, ... for the steps of a run.

    A run starts from the state of the step's live optimizer at the call with number 0. Learning rates of a live
    optimizer are read on each call, so that changes during a run are followed; those of steps that the live step has
    not reached yet come from a copy of the scheduler.

    Args:
        step: the step of the program.
        references: the quantities to compute.
        alike: by parameter, the one whose step count represents its own.
    """

    def __init__(self, step: Step, references: References, alike: Mapping[str, str]) -> None:
        self._step = step
        self._references, self._alike = references, alike
        self._counts: dict[str, float] = {}
        self._undamped: set[str] = set()
        self._steps = 0
        self._started = False
        self._ahead: LRScheduler | None = None
        self._reached = 0

    def __call__(self, number: int) -> dict[str, float]:
        """The value of each reference, by name, in step `number` of the run."""
        if number == 0 or not self._started:
            self._start()
        values = {}
        groups = self._groups(number)
        for reference, (place, name, quantity) in self._references.items():
            first = number == 0 and name in self._undamped
            count = self._counts[name] + number + 1
            values[reference.name] = optimizers.numbers(groups[place], count, first=first)[quantity]
        return values

    def apart(self, found: Iterable[ModuleTensor]) -> str:
        """A parameter whose step count now differs from that of its representative, in words; empty if there is none.

        Args:
            found: the module tensors of the model.
        """
        optimizer = self._step.torch_optimizer
        if optimizer is None:
            return ""
        tensors = {member.name: member.tensor for member in found}
        dampened = any(group.get("dampening") for group in optimizer.param_groups)

        def reached(name: str) -> tuple[float, bool]:
            if name not in tensors:
                return 0.0, dampened
            state = optimizer.state.get(tensors[name], {})
            return float(state.get("step", 0.0)), dampened and untouched(optimizer, tensors[name])

        for name, other in self._alike.items():
            if name != other and reached(name) != reached(other):
                return f"{name} has been updated more or less often than {other}"
        return ""

    def _start(self) -> None:
        live = self._step.live
        self._started, self._ahead = True, None
        self._steps = live.steps if live is not None else 0
        self._counts = {name: 0.0 for _, name, _ in self._references.values()}
        damped = {name for _, name, quantity in self._references.values() if quantity == "1-dampening"}
        self._undamped = damped if live is None else set()
        optimizer = self._step.torch_optimizer
        if optimizer is None:
            return
        model = live.model if live is not None else self._step.make_model()
        for member in module_tensors(model):
            if member.name in self._counts:
                state = optimizer.state.get(member.tensor, {})
                self._counts[member.name] = float(state.get("step", 0.0))
                if member.name in damped and untouched(optimizer, member.tensor):
                    self._undamped.add(member.name)

    def _groups(self, number: int) -> list[dict[str, Any]]:
        """The hyperparameters of each parameter group in a step of the run."""
        spec = getattr(self._step, "optimizer", None)
        if isinstance(spec, optimizers.Spec):
            return [optimizers.group_of(spec, self._steps + number)]
        made = 0 if self._step.live is None else self._step.live.steps - self._steps
        scheduler = getattr(self._step, "scheduler", None)
        if number > made and scheduler is not None:
            return self._groups_ahead(scheduler, made, number)
        optimizer = self._step.torch_optimizer
        return [] if optimizer is None else optimizer.param_groups

    def _groups_ahead(self, scheduler: LRScheduler, made: int, number: int) -> list[dict[str, Any]]:
        """The same from a copy of the scheduler that is advanced to the step."""
        if self._ahead is None or self._reached > number:
            self._ahead, self._reached = _bodiless(scheduler), made
        advance(self._ahead, number - self._reached)
        self._reached = number
        return self._ahead.optimizer.param_groups


def advance(scheduler: LRScheduler, count: int) -> None:
    """Step a scheduler, even if the optimizer itself made no steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # warns that the optimizer has made no step
        for _ in range(count):
            scheduler.step()


def _bodiless(scheduler: LRScheduler) -> LRScheduler:
    """A copy of a scheduler whose optimizer has no parameter of its own."""
    optimizer = scheduler.optimizer
    memo: dict[int, object] = {id(optimizer.state): {}}
    for group in optimizer.param_groups:
        memo.update({id(parameter): nn.Parameter(torch.empty(0)) for parameter in group["params"]})
    return copy.deepcopy(scheduler, memo)
