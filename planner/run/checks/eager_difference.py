"""How far a run with other rounding is from eager PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from planner.graph import Graph
from planner.step import Step

_MOST_NOISE = 30


@dataclass(frozen=True, slots=True)
class Difference:
    """How far results are from eager PyTorch's.

    Args:
        absolute: the largest difference of a number.
        relative: the largest difference of a number, divided by the largest number of its tensor.
        tensor: where the relative one is.
        noise: the relative difference of eager PyTorch from itself, made once more with all state moved by one unit in
            the last place of the least precise dtype that the step computes in: how far rounding alone drives the same
            steps apart.
    """

    absolute: float
    relative: float
    tensor: str
    noise: float

    @property
    def is_rounding(self) -> bool:
        """Whether it is at most 30 times the noise, so that rounding explains it."""
        return self.relative <= _MOST_NOISE * self.noise


class EagerSteps:
    """The same steps in eager PyTorch, on a copy of the step made here.

    Args:
        step: is copied in its present state.
        graph: captured from it.
    """

    def __init__(self, step: Step, graph: Graph) -> None:
        self._step, self._moved = step.clone(), step.clone()
        unit = max((torch.finfo(dtype).eps for dtype in _floating(graph)), default=0.0)
        with torch.no_grad():
            for value in self._moved.state().values():
                if not value.is_floating_point():
                    continue
                if torch.finfo(value.dtype).eps < unit:
                    value.add_(value.abs(), alpha=unit)
                else:
                    value.copy_(torch.nextafter(value, torch.full_like(value, torch.inf)))

    def difference(
        self, given: Sequence[tuple[Any, Tensor | None]], outputs: Sequence[Tensor], state: Mapping[str, Tensor]
    ) -> Difference:
        """Make the same steps, and compare their outputs and the state after them.

        Args:
            given: for each step the batch, None for the step's own, and the state that PyTorch's generator has before
                it, None if that is as the last step left it.
            outputs: of each step of a run, the loss, or for inference the first output.
            state: after them, by key.
        """
        theirs, expected = self._made(self._step, given)
        moved_outputs, moved = self._made(self._moved, given)
        worst, tensor, absolute = _furthest(outputs, state, theirs, expected)
        noise, _, _ = _furthest(moved_outputs, moved, theirs, expected)
        return Difference(absolute, worst, tensor, noise)

    def _made(self, step: Step, given: Sequence[tuple[Any, Tensor | None]]) -> tuple[list[Tensor], dict[str, Tensor]]:
        """The outputs of eager steps, and the state after them."""
        before, found = torch.get_rng_state(), []
        try:
            for batch, drawn in given:
                if drawn is not None:
                    torch.set_rng_state(drawn)
                found.append(step.eager(batch).detach().clone())
            return found, step.state()
        finally:
            torch.set_rng_state(before)


def _floating(graph: Graph) -> set[torch.dtype]:
    """The floating-point dtypes of a step's tensors."""
    found = {getattr(torch, name) for name in {tensor.dtype for tensor in graph.tensors}}
    return {dtype for dtype in found if dtype.is_floating_point}


def _furthest(
    outputs: Sequence[Tensor], state: Mapping[str, Tensor], theirs: Sequence[Tensor], expected: Mapping[str, Tensor]
) -> tuple[float, str, float]:
    """The largest relative difference, of which tensor, and the largest absolute one."""
    pairs = [(f"output of step {step}", *each) for step, each in enumerate(zip(outputs, theirs, strict=True))]
    pairs += [(key, value, expected[key].detach()) for key, value in state.items() if key in expected]
    found = [(*_difference(ours, other), name) for name, ours, other in pairs]
    relative, _, tensor = max(found, key=lambda each: each[0])
    return relative, tensor, max(absolute for _, absolute, _ in found)


def _difference(ours: Tensor, other: Tensor) -> tuple[float, float]:
    """Relative and absolute; equal numbers do not differ, and others that are not finite differ without limit."""
    if not ours.numel():
        return 0.0, 0.0
    a, b = ours.detach().to(torch.float64), other.to(torch.float64)
    same = (a == b) | (a.isnan() & b.isnan())
    apart = torch.where(same, 0.0, (a - b).abs().nan_to_num(torch.inf, torch.inf))
    largest = float(b.abs().nan_to_num(0.0, 0.0, 0.0).max())
    absolute = float(apart.max())
    return (absolute / largest if largest else absolute), absolute
