"""Gradient scaling while a step is recorded: the kernels of `torch.amp.GradScaler`, gradient by gradient."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch.amp.grad_scaler import GradScaler

from planner import torch_private as private
from planner.capture.record.optimizer_kernels import PersistentTensor, Skipping
from planner.capture.record.recorder import Recorder
from planner.errors import StowageError
from planner.graph import Kind
from planner.program import Layout


class TracedScaler:
    """Scales the loss of a step on fake tensors, and unscales its gradients.

    PyTorch's scaler unscales all gradients by one call, for which all would have to be on the device at once. Here
    each has a call of its own, in the order in which the backward pass makes them, so that one may leave once it is
    unscaled. The arithmetic is the same.

    Args:
        scaler: of the step.
        recorder: not recording yet.
        parameters: fake tensors of the parameters that the optimizer updates, by name.
        device: the type of device that the step is to run on.
    """

    def __init__(
        self, scaler: GradScaler, recorder: Recorder, parameters: Mapping[str, torch.Tensor], device: str
    ) -> None:
        self._scaler = scaler
        self._recorder, self._parameters = recorder, parameters
        with recorder.fake:
            self._scale = torch.empty((), dtype=torch.float32, device=device)
            self._growth_tracker = torch.empty((), dtype=torch.int32, device=device)
        self._found_inf: torch.Tensor | None = None

    @property
    def states(self) -> list[PersistentTensor]:
        """What the scaler keeps from step to step."""
        states = {"scale": self._scale, "growth_tracker": self._growth_tracker}
        return [
            PersistentTensor(f"scaler/{name}", f"scaler/{name}", Kind.OPTIMIZER_STATE, "", self._recorder.layout(state))
            for name, state in states.items()
        ]

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """The scaled loss."""
        return loss * self._scale

    def unscale(self) -> None:
        """Unscale all gradients, and note whether a number in one of them is infinite or no number.

        Raises:
            StowageError: there is no gradient, or one that PyTorch's scaler does not unscale.
        """
        last_written: dict[int, int] = {}
        for place, event in enumerate(self._recorder.events):
            last_written.update({layout.storage: place for layout in (*event.made, *event.mutated)})
        by_name = {name: one.grad for name, one in self._parameters.items() if one.grad is not None}
        if not by_name:
            raise StowageError(
                "no parameter of the optimizer gets a gradient, which a gradient scaler needs: let the loss depend on "
                "one of them"
            )
        for name, gradient in by_name.items():
            _refuse_dtype(name, gradient.dtype)
        gradients = sorted(by_name.values(), key=lambda one: last_written.get(self._recorder.layout(one).storage, -1))
        with torch.no_grad():
            # in double precision, as in PyTorch's own scaler
            inverse = self._scale.double().reciprocal().float()
            self._found_inf = torch.zeros((), dtype=torch.float32, device=self._scale.device)
            for gradient in gradients:
                private.unscale(gradient, self._found_inf, inverse)

    def overflow(self) -> tuple[Layout, Skipping]:
        """Record whether the step updates nothing; returns the number that is 1 then and else 0, and what is of it."""
        assert self._found_inf is not None
        with torch.no_grad(), self._recorder.fake, self._recorder:
            made = self._found_inf, self._found_inf != 0, 1 - self._found_inf
        found_inf, overflowed, counted = map(self._recorder.layout, made)
        return found_inf, Skipping(overflowed, counted)

    def update(self) -> None:
        """Record the adaptation of the scale."""
        assert self._found_inf is not None
        with torch.no_grad(), self._recorder.fake, self._recorder:
            private.update_scale(self._scaler, self._scale, self._growth_tracker, self._found_inf)


def _refuse_dtype(name: str, dtype: torch.dtype) -> None:
    if dtype is torch.float16:
        raise StowageError(
            f"{name} and so its gradient is in float16, which a gradient scaler cannot unscale: keep parameters in "
            "float32 and pass autocast=torch.float16"
        )
    if dtype.is_complex:
        raise StowageError(
            f"{name} and so its gradient is complex, which a gradient scaler cannot unscale: train it without one"
        )
