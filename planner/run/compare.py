"""Holding a run against eager PyTorch, bit by bit."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from planner.capture.step import Step


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have the same shape, type and bits: a NaN equals itself, 0.0 and -0.0 differ."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    with torch.inference_mode():
        flat = [tensor.detach().contiguous().reshape(-1).view(torch.uint8) for tensor in (a, b)]
        return bool(torch.equal(*flat))


class Twin:
    """A copy of a step that eager PyTorch makes beside the run.

    Args:
        step: in the state that the run starts from.
    """

    def __init__(self, step: Step) -> None:
        self._step = step.clone()
        self._different: dict[str, None] = {}
        self.seconds: list[float] = []
        self.compared = 0

    @property
    def mismatches(self) -> tuple[str, ...]:
        """Names of what differed in any step, in the order in which it was found."""
        return tuple(self._different)

    def step(self, number: int, generator: Tensor, outputs: Sequence[Tensor], state: Mapping[str, Tensor]) -> None:
        """Make one eager step and hold it against a step of the run that is just done.

        Args:
            number: the step's, from 0.
            generator: the state of PyTorch's generator before the run's step.
            outputs: what the run's step returned; eager PyTorch returns the first of them.
            state: of the run.
        """
        after = torch.get_rng_state()
        torch.set_rng_state(generator)
        start = time.perf_counter()
        loss = self._step.eager()
        self.seconds.append(time.perf_counter() - start)
        self._hold(f"step {number}: loss", outputs[0].reshape(loss.shape), loss)
        self._hold(f"step {number}: random numbers", after, torch.get_rng_state())
        theirs = self._step.state()
        for key, ours in state.items():
            self._hold(f"step {number}: {key}", ours, theirs[key])

    def _hold(self, name: str, ours: Tensor, theirs: Tensor) -> None:
        self.compared += 1
        if not same_bits(ours, theirs):
            self._different[name] = None
