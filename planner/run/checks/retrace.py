"""Retracing a step during a run: the trace is compared call by call, to find changes that no guard detects."""

from __future__ import annotations

from time import perf_counter

from planner.cancel import CancelToken
from planner.capture import trace, trace_difference
from planner.errors import StowageError
from planner.global_state_lock import global_state_lock
from planner.guards import undisturbed
from planner.program import backend_of
from planner.progress import Progress
from planner.step import Step


class Recheck:
    """Retraces the step before the steps 2, 4, 8, 16, ... of a run and at the end of loops, or at a fixed interval.

    Args:
        step: live.
        every: interval in steps; None for the powers of two, 0 for never.
        stop: checked while tracing.

    Attributes:
        seconds: total time spent so far.
        looks: number of rechecks.
    """

    def __init__(self, step: Step, every: int | None, stop: CancelToken) -> None:
        self._step, self._every, self._stop = step, every, stop
        self.seconds, self.looks = 0.0, 0
        self._agreed, self._loops = 1, 0

    @undisturbed()
    def before(self, number: int) -> None:
        """Recheck the next step if a recheck is due.

        Args:
            number: of the next step, from 1.

        Raises:
            StowageError: the step would run different calls from those captured.
        """
        if self._due(number):
            self._look(number)

    @undisturbed()
    def after(self, made: int, in_this_loop: int) -> None:
        """Recheck at the end of the first, second, fourth, ... loop, for changes since the last recheck.

        Args:
            made: number of steps so far.
            in_this_loop: how many of them were made in this loop.

        Raises:
            StowageError: another step would run different calls from those captured.
        """
        if self._every is not None or in_this_loop < 2 or made <= self._agreed:
            return
        self._loops += 1
        if self._loops & (self._loops - 1) == 0:
            self._look(made + 1)
            self._agreed = made  # not made + 1: much may change before the next step is made

    def _look(self, number: int) -> None:
        begun = perf_counter()
        known, backend = self._step.captures[0].trace, backend_of(self._step.captures[0].graph.device)
        with global_state_lock(self._stop.check):
            try:
                now = trace(self._step, backend, Progress(stop=self._stop))
            except StowageError as error:
                raise StowageError(
                    f"step {number} can no longer be captured, although nothing that is watched has changed; the "
                    f"numbers of the steps from {self._agreed + 1} on may differ from eager PyTorch's: {error}"
                ) from error
        self.seconds += perf_counter() - begun
        self.looks += 1
        difference = trace_difference(known, now)
        if difference:
            raise StowageError(
                f"step {number} would run {difference}: the step depends on something that cannot be watched, so from "
                f"step {self._agreed + 1} on the numbers may differ from eager PyTorch's; let it follow an attribute "
                "of a module, a closure or a tensor, or make every step in eager PyTorch"
            )
        self._agreed = number

    def _due(self, number: int) -> bool:
        if number < 2 or self._every == 0:
            return False
        return number & (number - 1) == 0 if self._every is None else (number - 1) % self._every == 0
