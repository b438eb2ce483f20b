"""Comparison of a run with eager PyTorch, bit by bit."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from planner.cancel import CancelToken, interruptibly, uninterrupted
from planner.global_state_lock import global_state_lock
from planner.guards import undisturbed
from planner.program import Outputs
from planner.run.checks.brought_state import brought_to
from planner.step import Step
from planner.torch_private import default_generator

_WORD = 8


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have the same shape, type and bits: a NaN equals itself, 0.0 and -0.0 differ."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.device != b.device:
        a, b = a.cpu(), b.cpu()
    with torch.inference_mode():
        plain = [tensor.detach().resolve_conj().resolve_neg() for tensor in (a, b)]
        # a single element is contiguous whatever its strides
        one, other = (t.contiguous().as_strided((t.numel(),), (1,)).view(torch.uint8) for t in plain)
        if any(flat.storage_offset() % _WORD or len(flat) % _WORD for flat in (one, other)):
            return torch.equal(one, other)
        return torch.equal(one.view(torch.int64), other.view(torch.int64))  # four to eight times as fast


@dataclass(frozen=True, slots=True)
class Check:
    """The result of comparing a step with eager PyTorch.

    Args:
        seconds: duration of the eager step.
        compared: how many tensors were compared.
        mismatches: names of the tensors that differ.
    """

    seconds: float
    compared: int
    mismatches: tuple[str, ...]


class EagerReference:
    """Eager PyTorch, making the same steps on the live model.

    The run has a copy of the state in its arena, so no further copy is needed: after an eager step, the live model
    holds the values that the run should have written.

    Args:
        step: its live model is used.
        stop: checked periodically, also in another thread, to abandon the step.
        shared: whether the eager steps may leave PyTorch's default generator advanced; otherwise its state is restored
            after each.
        device: the type of device that the plan runs on, and the steps are made on.

    Attributes:
        drawn: the state of the generator after the last step; None until that step is finished.
    """

    def __init__(self, step: Step, stop: CancelToken, *, shared: bool, device: str) -> None:
        self._step, self._stop, self._shared, self._device = step, stop, shared, device
        self.drawn: Tensor | None = None

    def step(
        self,
        number: int,
        before: Tensor,
        after: Tensor,
        outputs: Outputs,
        state: Mapping[str, Tensor],
        batch: Any = None,
    ) -> tuple[Check, Tensor]:
        """Make one eager step and compare it with the step that the run has just made.

        Args:
            number: the step's number, from 0.
            before, after: the state of the run's generator before and after its step.
            outputs: the outputs of the run's step.
            state: the run's state by key.
            batch: the batch that the step was made with; the step's own if None.

        Returns:
            The comparison, and the state of the generator after the eager step.
        """
        self.drawn = None
        with global_state_lock(self._stop.check):
            generator = default_generator(self._device)
            lent = generator.get_state()
            generator.set_state(before)
            try:
                start = time.perf_counter()
                expected = self._eager(batch)
                seconds = time.perf_counter() - start
                with uninterrupted():
                    # first, so that the step counts once where the user's scheduler raises
                    self.drawn = drawn = generator.get_state()
                    self._step.computed()
            finally:
                if not self._shared:
                    generator.set_state(lent)
        pairs = [("loss", outputs[0].reshape(expected[0].shape), expected[0]), ("random numbers", after, drawn)]
        theirs = self._step.state()
        lost = [f"step {number}: {key}" for key in state if key not in theirs]
        if outputs.form != expected.form:
            lost.append(f"step {number}: extras")
        elif outputs.form is not None:
            pairs += zip(outputs.form.names, outputs[1:], expected[1:], strict=True)
        pairs += [(key, ours, theirs[key]) for key, ours in state.items() if key in theirs]
        different = []
        for name, ours, other in pairs:
            self._stop.check()  # comparing takes as long as reading all of the state
            if not same_bits(ours, other):
                different.append(f"step {number}: {name}")
        return Check(seconds, len(pairs) + len(lost), (*different, *lost)), drawn

    def _eager(self, batch: Any) -> Outputs:
        """Make the step where the plan runs."""
        live = self._step.materialize()
        with brought_to(self._device, self._step, live.batch if batch is None else batch) as there:
            return self._computed(live.model, there)

    def _computed(self, model: nn.Module, batch: Any) -> Outputs:
        """Make the step; during the backward pass, which runs outside Python, a hook on each gradient may cancel it."""
        with undisturbed():
            parameters = [one for one in model.parameters() if one.requires_grad and one.is_leaf]
        hooks: list[Any] = []
        try:
            with uninterrupted():
                for parameter in parameters:
                    hook = parameter.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
                        lambda _: self._stop.check()
                    )
                    hooks.append(hook)
            return interruptibly(lambda: self._step.compute(batch), self._stop)
        finally:
            with uninterrupted():
                for hook in hooks:
                    hook.remove()
