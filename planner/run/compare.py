"""Holding a run against eager PyTorch, bit by bit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from planner.capture.sole import sole
from planner.capture.step import Step
from planner.run.interrupts import interruptibly, uninterrupted

_WORD = 8


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have the same shape, type and bits: a NaN equals itself, 0.0 and -0.0 differ."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    with torch.inference_mode():
        plain = [tensor.detach().resolve_conj().resolve_neg() for tensor in (a, b)]
        # one element is contiguous whatever its strides
        one, other = (t.contiguous().as_strided((t.numel(),), (1,)).view(torch.uint8) for t in plain)
        if any(flat.storage_offset() % _WORD or len(flat) % _WORD for flat in (one, other)):
            return torch.equal(one, other)
        return torch.equal(one.view(torch.int64), other.view(torch.int64))  # four to eight times as fast


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


class EagerReference:
    """Eager PyTorch, which makes the same steps on the live model.

    The run has a copy of the state in its arena, so nothing is copied besides: what the live model holds after an eager
    step is what the run ought to have left there.

    Args:
        step: whose live model is used.
        impatient: asked all the time, also in another thread; it may raise Cancelled, which abandons the step.
        shared: whether eager PyTorch draws from its default generator as if nobody else were there; else that is lent
            to it and put back.

    Attributes:
        drawn: the state of the generator after the last step; None as long as that is not made.
    """

    def __init__(self, step: Step, impatient: Callable[[], object], *, shared: bool) -> None:
        self._step, self._impatient, self._shared = step, impatient, shared
        self.drawn: Tensor | None = None

    def step(
        self,
        number: int,
        before: Tensor,
        after: Tensor,
        outputs: Sequence[Tensor],
        state: Mapping[str, Tensor],
        batch: Any = None,
    ) -> tuple[Check, Tensor]:
        """Make one eager step and hold it against a step of the run that is just done.

        Args:
            number: the step's, from 0.
            before, after: the state of the run's generator before and after its step.
            outputs: what the run's step returned; eager PyTorch returns the first of them.
            state: of the run.
            batch: what the step was made with; the step's own if None.

        Returns:
            What was found, and the state of the generator after the eager step.
        """
        self.drawn = None
        with sole(self._impatient):
            lent = torch.get_rng_state()
            torch.set_rng_state(before)
            try:
                start = time.perf_counter()
                loss = self._eager(batch)
                seconds = time.perf_counter() - start
                with uninterrupted():
                    self._step.computed()
                    self.drawn = drawn = torch.get_rng_state()
            finally:
                if not self._shared:
                    torch.set_rng_state(lent)
        pairs = [("loss", outputs[0].reshape(loss.shape), loss), ("random numbers", after, drawn)]
        theirs = self._step.state()
        lost = [f"step {number}: {key}" for key in state if key not in theirs]
        pairs += [(key, ours, theirs[key]) for key, ours in state.items() if key in theirs]
        different = []
        for name, ours, other in pairs:
            self._impatient()  # to compare takes as long as to read all of the state
            if not same_bits(ours, other):
                different.append(f"step {number}: {name}")
        return Check(seconds, len(pairs) + len(lost), (*different, *lost)), drawn

    def _eager(self, batch: Any) -> Tensor:
        """Make the step; in its backward pass, in which Python has no part, each gradient asks whether to go on."""
        parameters = [one for one in self._step.materialize().model.parameters() if one.requires_grad and one.is_leaf]
        hooks: list[Any] = []
        try:
            with uninterrupted():
                for parameter in parameters:
                    hook = parameter.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
                        lambda _: self._impatient()
                    )
                    hooks.append(hook)
            return interruptibly(lambda: self._step.compute(batch), self._impatient)
        finally:
            with uninterrupted():
                for hook in hooks:
                    hook.remove()
