"""What a loss returns beside its value, over the micro-batches of a step."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from planner import torch_private as private
from planner.errors import StowageError
from planner.program import Outputs, taken_apart
from planner.step.module_tensors import module_tensors


class ExtrasOfStep:
    """Collects what the loss of each micro-batch returns beside its value.

    Args:
        model: real or fake.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._extras: list[Any] = []
        self._losses = 0

    def split(self, returned: object) -> torch.Tensor:
        """Keep the extras of a micro-batch as they are now; returns the loss.

        Raises:
            StowageError: what was returned is neither a loss nor a loss and extras.
        """
        self._losses += 1
        if isinstance(returned, tuple) and len(returned) == 2:
            returned, extras = returned
            self._extras.append(self._kept(extras))
        elif isinstance(returned, tuple):
            raise StowageError(
                f"the loss returns {len(returned)} values: return the loss, or a pair of the loss and a dict of tensors"
            )
        if not isinstance(returned, torch.Tensor) or returned.numel() != 1:
            shaped = f"tensor of shape {tuple(returned.shape)}" if isinstance(returned, torch.Tensor) else ""
            what = shaped or type(returned).__name__
            raise StowageError(f"the loss is a {what}: it must be one number, for example a mean")
        return returned

    def outputs(self, loss: torch.Tensor) -> Outputs:
        """What the step returns.

        Args:
            loss: of all micro-batches.

        Raises:
            StowageError: the losses of some micro-batches alone return extras.
        """
        if not self._extras:
            return Outputs([loss])
        if len(self._extras) != self._losses:
            raise StowageError(
                "the loss returns extras for some micro-batches alone: return them for each, or for none"
            )
        tensors, form = taken_apart(tuple(self._extras) if self._losses > 1 else self._extras[0])
        return Outputs([loss, *tensors], form)

    def _kept(self, extras: Any) -> Any:
        """The extras, without gradients; what is memory of the model's own state is copied before that changes."""
        tensors, form = taken_apart(extras)
        own = [entry.tensor for entry in module_tensors(self._model)]
        own += [tensor.grad for tensor in own if tensor.is_leaf and tensor.grad is not None]
        changing = {_memory(tensor) for tensor in own if tensor.layout is torch.strided}
        detached = [tensor.detach() for tensor in tensors]
        return form.rebuilt([one.clone() if _memory(one) in changing else one for one in detached])


def _memory(tensor: torch.Tensor) -> int:
    return private.storage_identity(tensor.untyped_storage())
