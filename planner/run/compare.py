"""Holding a run against eager PyTorch, bit by bit."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from planner.capture.sole import sole
from planner.capture.step import Step


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have the same shape, type and bits: a NaN equals itself, 0.0 and -0.0 differ."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    with torch.inference_mode():
        flat = [tensor.detach().contiguous().reshape(-1).view(torch.uint8) for tensor in (a, b)]
        return bool(torch.equal(*flat))


@dataclass(frozen=True, slots=True)
class Check:
    """A step held against eager PyTorch.

    Args:
        seconds: that eager PyTorch took.
        compared: how many tensors were compared.
        mismatches: names of those that differ.
    """

    seconds: float
    compared: int
    mismatches: tuple[str, ...]


class Twin:
    """A copy of a step that eager PyTorch makes beside the run.

    Args:
        step: in the state that the run starts from.
    """

    def __init__(self, step: Step) -> None:
        self._original, self._step = step, step.clone()

    def follow(self) -> None:
        """Take over the hyperparameters that the step has now."""
        ours, theirs = self._original.torch_optimizer, self._step.torch_optimizer
        if ours is None or theirs is None:
            return
        for group, other in zip(theirs.param_groups, ours.param_groups, strict=True):
            group.update(copy.deepcopy({name: value for name, value in other.items() if name != "params"}))

    def step(
        self,
        number: int,
        before: Tensor,
        after: Tensor,
        outputs: Sequence[Tensor],
        state: Mapping[str, Tensor],
        batch: Any = None,
    ) -> Check:
        """Make one eager step and hold it against a step of the run that is just done.

        PyTorch's generator, which eager draws from, is lent to it and put back.

        Args:
            number: the step's, from 0.
            before, after: the state of the run's generator before and after its step.
            outputs: what the run's step returned; eager PyTorch returns the first of them.
            state: of the run.
            batch: what the step was made with; the step's own if None.
        """
        with sole():
            lent = torch.get_rng_state()
            torch.set_rng_state(before)
            try:
                start = time.perf_counter()
                loss = self._step.eager(batch)
                seconds = time.perf_counter() - start
                drawn = torch.get_rng_state()
            finally:
                torch.set_rng_state(lent)
        pairs = [("loss", outputs[0].reshape(loss.shape), loss), ("random numbers", after, drawn)]
        theirs = self._step.state()
        pairs += [(key, ours, theirs[key]) for key, ours in state.items()]
        different = tuple(f"step {number}: {name}" for name, ours, other in pairs if not same_bits(ours, other))
        return Check(seconds, len(pairs), different)
