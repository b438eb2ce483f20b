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
        representatives: by parameter, the one whose step count represents its own.
    """

    def __init__(self, step: Step, references: References, representatives: Mapping[str, str]) -> None:
        self._step = step
        self._references, self._representatives = references, representatives
        self._counts: dict[str, float] = {}
        self._undampened: set[str] = set()
        self._steps = 0
        self._started = False
        self._scheduler_copy: LRScheduler | None = None
        self._scheduler_steps = 0

    def __call__(self, number: int, skipped: int = 0) -> dict[str, float]:
        """The value of each reference, by name, in step `number` of the run.

        Args:
            number: of the step.
            skipped: how many of the run's steps before it have updated nothing, so that no step count includes them.
        """
        if number == 0 or not self._started:
            self._start()
        values = {}
        groups = self._groups(number)
        for reference, (index, name, quantity) in self._references.items():
            first = number == skipped and name in self._undampened
            count = self._counts[name] + number - skipped + 1
            values[reference.name] = optimizers.numbers(groups[index], count, first=first)[quantity]
        return values

    def changed_step_count(self, found: Iterable[ModuleTensor]) -> str:
        """A parameter whose step count now differs from that of its representative, in words; empty if there is none.

        Args:
            found: the module tensors of the model.
        """
        optimizer = self._step.torch_optimizer
        if optimizer is None:
            return ""
        tensors = {entry.name: entry.tensor for entry in found}
        dampened = any(group.get("dampening") for group in optimizer.param_groups)

        def reached(name: str) -> tuple[float, bool]:
            if name not in tensors:
                return 0.0, dampened
            state = optimizer.state.get(tensors[name], {})
            return float(state.get("step", 0.0)), dampened and untouched(optimizer, tensors[name])

        for name, other in self._representatives.items():
            if name != other and reached(name) != reached(other):
                return f"{name} has been updated more or less often than {other}"
        return ""

    def _start(self) -> None:
        live = self._step.live
        self._started, self._scheduler_copy = True, None
        self._steps = live.steps if live is not None else 0
        self._counts = {name: 0.0 for _, name, _ in self._references.values()}
        dampened_names = {name for _, name, quantity in self._references.values() if quantity == "1-dampening"}
        self._undampened = dampened_names if live is None else set()
        optimizer = self._step.torch_optimizer
        if optimizer is None:
            return
        model = live.model if live is not None else self._step.make_model()
        for entry in module_tensors(model):
            if entry.name in self._counts:
                state = optimizer.state.get(entry.tensor, {})
                self._counts[entry.name] = float(state.get("step", 0.0))
                if entry.name in dampened_names and untouched(optimizer, entry.tensor):
                    self._undampened.add(entry.name)

    def _groups(self, number: int) -> list[dict[str, Any]]:
        """The hyperparameters of each parameter group in a step of the run."""
        spec = getattr(self._step, "optimizer", None)
        if isinstance(spec, optimizers.Spec):
            return [optimizers.group_of(spec, self._steps + number)]
        live_steps = 0 if self._step.live is None else self._step.live.steps - self._steps
        scheduler = getattr(self._step, "scheduler", None)
        if number > live_steps and scheduler is not None:
            return self._groups_ahead(scheduler, live_steps, number)
        optimizer = self._step.torch_optimizer
        return [] if optimizer is None else optimizer.param_groups

    def _groups_ahead(self, scheduler: LRScheduler, live_steps: int, number: int) -> list[dict[str, Any]]:
        """The same from a copy of the scheduler that is advanced to the step."""
        if self._scheduler_copy is None or self._scheduler_steps > number:
            self._scheduler_copy, self._scheduler_steps = without_parameters(scheduler), live_steps
        advance(self._scheduler_copy, number - self._scheduler_steps)
        self._scheduler_steps = number
        return self._scheduler_copy.optimizer.param_groups


def advance(scheduler: LRScheduler, count: int) -> None:
    """Step a scheduler, even if the optimizer itself made no steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # warns that the optimizer has made no step
        for _ in range(count):
            scheduler.step()


def without_parameters(scheduler: LRScheduler) -> LRScheduler:
    """A copy of a scheduler whose optimizer has no parameter of its own."""
    optimizer = scheduler.optimizer
    memo: dict[int, object] = {id(optimizer.state): {}}
    for group in optimizer.param_groups:
        memo.update({id(parameter): nn.Parameter(torch.empty(0)) for parameter in group["params"]})
    return copy.deepcopy(scheduler, memo)
