"""A second look at a step while it is run, for what no guard sees: it is traced again and compared call by call."""

from __future__ import annotations

from time import perf_counter

from planner.capture.likeness import unlikeness
from planner.capture.sole import sole
from planner.capture.step import Step
from planner.capture.trace import trace
from planner.capture.undisturbed import undisturbed
from planner.errors import StowageError
from planner.run.stopping import Stop


class Recheck:
    """Looks again before the steps 2, 4, 8, 16, ... of a run and at the end of loops, or every so many steps.

    Args:
        step: live.
        every: None for the powers of two, 0 for never.
        stop: looked at all the time.

    Attributes:
        seconds: that the looks took so far.
        looks: how many.
    """

    def __init__(self, step: Step, every: int | None, stop: Stop) -> None:
        self._step, self._every, self._stop = step, every, stop
        self.seconds, self.looks = 0.0, 0
        self._agreed, self._loops = 1, 0

    @undisturbed()
    def before(self, number: int) -> None:
        """Look again if it is time to.

        Args:
            number: of the step that comes, from 1.

        Raises:
            StowageError: the step would run other calls than those that were captured.
        """
        if self._due(number):
            self._look(number)

    @undisturbed()
    def after(self, made: int, in_this_loop: int) -> None:
        """Look again at the end of the first, second, fourth, ... loop, for what was changed since the last look.

        Args:
            made: steps so far.
            in_this_loop: of them.

        Raises:
            StowageError: another step would run other calls than those that were captured.
        """
        if self._every is not None or in_this_loop < 2 or made <= self._agreed:
            return
        self._loops += 1
        if self._loops & (self._loops - 1) == 0:
            self._look(made + 1)
            self._agreed = made  # before the next step is made, much may change

    def _look(self, number: int) -> None:
        begun = perf_counter()
        known = self._step.captures[0].trace
        with sole(self._stop.between_steps):
            try:
                now = trace(self._step, lambda *_: self._stop.between_steps())
            except StowageError as error:
                raise StowageError(
                    f"step {number} can no longer be captured, although nothing that is watched has changed; the "
                    f"numbers of the steps from {self._agreed + 1} on may differ from eager PyTorch's: {error}"
                ) from error
        self.seconds += perf_counter() - begun
        self.looks += 1
        difference = unlikeness(known, now)
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
