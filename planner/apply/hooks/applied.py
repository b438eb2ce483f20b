"""A plan in use."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from torch.autograd.graph import saved_tensors_hooks

from planner.apply.hooks.offloading import OffloadingHooks
from planner.apply.schedule.parts import AppliedPart
from planner.errors import StowageError
from planner.units import format_apart, format_bytes


class Applied:
    """A plan that ordinary PyTorch follows inside a `with` block, as far as it can.

    Args:
        hooks: of autograd.
        expressed: what of the plan is followed.
        left_out: what is not.
        peak_bytes: the most bytes of saved tensors on the device when a hook is called; parameters, buffers and the
            batch are not counted, nor is what ops need beside saved tensors.
        unswapped_bytes: the same without the plan.
        step_bytes: the most bytes that the whole step is expected to have on the device, with parameters, gradients,
            optimizer state and temporaries; what PyTorch's allocator adds is not counted.
        budget_bytes: of the plan.
        least_bytes: what the op that works on most works on; no plan has a budget below.
        beyond_the_plan: what is on the device at that moment although the plan has freed it or swaps it.
        advice: what to do where nothing of the plan is followed; empty otherwise.
    """

    def __init__(
        self,
        hooks: OffloadingHooks,
        expressed: tuple[AppliedPart, ...],
        left_out: tuple[AppliedPart, ...],
        peak_bytes: int,
        unswapped_bytes: int,
        *,
        step_bytes: int,
        budget_bytes: int,
        least_bytes: int = 0,
        beyond_the_plan: tuple[AppliedPart, ...] = (),
        advice: str = "",
    ) -> None:
        self.expressed, self.left_out = expressed, left_out
        self.peak_bytes, self.unswapped_bytes = peak_bytes, unswapped_bytes
        self.step_bytes, self.budget_bytes, self.advice = step_bytes, budget_bytes, advice
        self.beyond_the_plan, self.least_bytes = beyond_the_plan, least_bytes
        self._hooks, self._entered, self._closed = hooks, saved_tensors_hooks(hooks.pack, hooks.unpack), False

    @property
    def steps(self) -> int:
        """How many whole forward passes were recognised as the captured step's."""
        return self._hooks.steps

    def __enter__(self) -> Self:
        if self._closed:
            raise StowageError("this plan's context is closed: call planner.apply again")
        self._closed = True
        self._entered.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.__exit__(kind, error, trace)
        self._hooks.close()

    def __repr__(self) -> str:
        with_plan, without = format_bytes(self.peak_bytes), format_bytes(self.unswapped_bytes)
        whole, budget = format_apart(self.step_bytes, self.budget_bytes)
        over = self.step_bytes > self.budget_bytes
        lines = [
            f"saved tensors: at most {with_plan} on the device, {without} without the plan",
            f"whole step: about {whole} on the device, {'over' if over else 'within'} the plan's budget of {budget}",
            *([f"beyond the plan: {part}" for part in self.beyond_the_plan] if over else []),
            *([self._how_to_stay_within()] if over and not self.advice else []),
            *([f"nothing of this plan is followed: {self.advice}"] if self.advice else []),
            *(f"expressed: {part}" for part in self.expressed),
            *(f"left out: {part}" for part in self.left_out),
        ]
        return "\n".join(lines)

    def _how_to_stay_within(self) -> str:
        """What to do where a plan is followed and the step is still expected to take more than its budget."""
        less = 2 * self.budget_bytes - self.step_bytes  # by as much as it is over
        budget, run = format_bytes(self.budget_bytes), "use planner.run, which keeps to it"
        if less < self.least_bytes:
            return f"to stay within {budget}, {run}; hooks cannot do enough of any plan for that"
        return f"to stay within {budget}, try a plan within {format_bytes(less)} or less, or {run}"
