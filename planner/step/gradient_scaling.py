"""Gradient scaling: the loss is scaled up, so that gradients in half precision do not vanish, and gradients back down.

A step whose gradients overflow updates nothing, and the scaler adapts its scale, as `torch.amp.GradScaler` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import torch
from torch.amp.grad_scaler import GradScaler

from planner import torch_private as private
from planner.errors import StowageError, given_type
from planner.guards import Reach
from planner.step.capture_guards import CaptureGuards


class LossScaler(Protocol):
    """What scales the loss of a step and unscales the gradients that result, real or while a step is captured."""

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """The scaled loss."""

    def unscale(self) -> None:
        """Unscale the gradients of all parameters that the optimizer updates, and find out whether any overflowed."""


class LiveScaler:
    """A scaler of PyTorch with the optimizer whose gradients it unscales, for one step.

    Args:
        scaler, optimizer: of the live step.
    """

    def __init__(self, scaler: GradScaler, optimizer: torch.optim.Optimizer) -> None:
        self._scaler, self._optimizer = scaler, optimizer

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """The scaled loss."""
        return self._scaler.scale(loss)

    def unscale(self) -> None:
        """Unscale the gradients of the optimizer's parameters in place."""
        self._scaler.unscale_(self._optimizer)

    def step(self) -> None:
        """Let the optimizer make its step unless a gradient overflowed, then adapt the scale."""
        self._scaler.step(self._optimizer)
        self._scaler.update()

    @contextmanager
    def iteration(self) -> Iterator[None]:
        """Leave the scaler ready for another iteration if the block is interrupted."""
        try:
            yield
        except BaseException:
            private.begin_iteration(self._scaler)
            raise


def enabled_scaler(scaler: object) -> GradScaler | None:
    """The scaler to use; None for none, and for one that is disabled.

    Raises:
        StowageError: it is not a `torch.amp.GradScaler`.
    """
    if scaler is None:
        return None
    if isinstance(scaler, type) or not isinstance(scaler, GradScaler):
        kind = f"class {scaler.__name__}" if isinstance(scaler, type) else type(scaler).__name__
        raise StowageError(f'the scaler is a {kind}: pass a gradient scaler, such as torch.amp.GradScaler("cpu")')
    if type(scaler) not in (GradScaler, torch.cuda.amp.GradScaler):
        raise StowageError(
            f"the scaler is {given_type(scaler)}, whose own code a plan would not run: pass a torch.amp.GradScaler"
        )
    return scaler if scaler.is_enabled() else None


def refuse_scaler_in_use(scaler: GradScaler | None, reach: Reach) -> None:
    """Raise a StowageError for a scaler that is in the middle of an iteration, or that the step's own code uses.

    Args:
        scaler: None if the step has none.
        reach: of the step.
    """
    if scaler is None:
        return
    if private.in_iteration(scaler):
        raise StowageError(
            "the scaler has unscaled gradients since its last update, and a step begins with scaling its loss: call "
            "scaler.step(optimizer) and scaler.update() first"
        )
    if any(getattr(container, "target", None) is vars(scaler) for container in reach.containers):
        raise StowageError(
            "the model or the loss uses the scaler that TrainStep is given, which scales the loss then: return the "
            "loss as it is, and ask the scaler between two steps of Run.steps"
        )


def scaler_guards(scaler: GradScaler | None) -> CaptureGuards:
    """The guards of a scaler: the numbers by which it adapts its scale.

    Args:
        scaler: None if the step has none.
    """
    if scaler is None:
        return {"step.scaler": None}
    return {
        "step.scaler": "a scaler",
        "scaler.growth_factor": scaler.get_growth_factor(),
        "scaler.backoff_factor": scaler.get_backoff_factor(),
        "scaler.growth_interval": scaler.get_growth_interval(),
    }
