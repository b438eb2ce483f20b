"""How a changed step is made from a given one, whose model and batch are left as they are."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from planner import torch_private as private
from planner.step import SGD, Adam, AdamW, InferenceStep, Step, TrainStep


@dataclass(frozen=True)
class StepRecipe:
    """A given step, and what is changed about it.

    Args:
        given: the step.
        on_model: applied in turn to a copy of its model.
        on_batch: applied in turn to its batch; they return a new one.
        optimizer: in place of the given one; None for the given one.
        micro_batches: how many.
        autocast: the dtype; None for none.
    """

    given: Step
    on_model: tuple[Callable[[nn.Module], None], ...] = ()
    on_batch: tuple[Callable[[Any], Any], ...] = ()
    optimizer: SGD | Adam | AdamW | None = None
    micro_batches: int = 1
    autocast: torch.dtype | None = None

    @classmethod
    def of(cls, step: Step) -> StepRecipe:
        """A recipe that changes nothing."""
        if isinstance(step, TrainStep):
            return cls(step, micro_batches=step.micro_batches, autocast=step.autocast)
        return cls(step)

    def with_model(self, change: Callable[[nn.Module], None]) -> StepRecipe:
        """The same with another change of the model, made in place on the copy."""
        return replace(self, on_model=(*self.on_model, change))

    def with_batch(self, change: Callable[[Any], Any]) -> StepRecipe:
        """The same with another change of the batch."""
        return replace(self, on_batch=(*self.on_batch, change))

    def build(self) -> Step:
        """The changed step.

        Raises:
            StowageError: the step does not allow the changes.
        """
        given = self.given
        model = given.live.model if given.live is not None and isinstance(given.model, nn.Module) else given.model
        name = given.name
        if not isinstance(given, TrainStep):
            return InferenceStep(self._changed(model), self._batch(), name=name, seed=given.seed)
        optimizer, scheduler, made = self.optimizer or given.optimizer, None, self._changed(model)
        if isinstance(optimizer, torch.optim.Optimizer):  # which knows its parameters: it is copied together with them
            made, optimizer, scheduler = copy.deepcopy((model, optimizer, given.scheduler))
            for change in self.on_model:
                change(made)  # type: ignore[arg-type]
        return TrainStep(
            made, self._batch(), loss=given.loss, optimizer=optimizer, scheduler=scheduler, clip_norm=given.clip_norm,
            micro_batches=self.micro_batches, autocast=self.autocast, scaler=copy.deepcopy(given.scaler),
            recapture=given.recapture, name=name, seed=given.seed,
        )  # fmt: skip

    def _changed(self, model: nn.Module | Callable[[], nn.Module]) -> Callable[[], nn.Module]:
        """A function that makes the changed model, without memory while a step is captured."""

        def make() -> nn.Module:
            # a function may return a module that its caller keeps
            made = independent_copy(model if isinstance(model, nn.Module) else model())
            for change in self.on_model:
                change(made)
            return made

        return make

    def _batch(self) -> Any:
        if not self.on_batch:
            return self.given.batch
        if not callable(self.given.batch):
            return self._changed_batch(self.given.batch)
        make = self.given.batch
        return lambda: self._changed_batch(make())

    def _changed_batch(self, batch: Any) -> Any:
        for change in self.on_batch:
            batch = change(batch)
        return batch


def independent_copy(module: nn.Module) -> nn.Module:
    """A copy of a module with tensors of its own; in a fake mode they take no memory.

    Args:
        module: left as it is.
    """
    found = [*module.parameters(), *module.buffers()]
    found += [
        value for part in module.modules() for value in vars(part).values() if isinstance(value, torch.Tensor)
    ]  # fmt: skip
    copied: dict[int, Any] = {id(tensor): _copy_of(tensor) for tensor in found}
    return copy.deepcopy(module, copied)


def _copy_of(tensor: torch.Tensor) -> torch.Tensor:
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    if not isinstance(made, private.FakeTensor):
        made.copy_(tensor.detach())
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(made, requires_grad=tensor.requires_grad)
    return made.requires_grad_(tensor.requires_grad)
