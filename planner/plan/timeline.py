"""The times of a step: one type for predictions and for measurements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Seconds = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Timeline:
    """Spans on the three streams and bytes over time, in seconds from the start of the step.

    Args:
        seconds: length of the step.
        compute: `[ops, 2]`, start and stop of the op in each slot.
        swap_out: `[swap-outs, 2]`, in the order of the plan's swap-out queue.
        swap_in: `[swap-ins, 2]`, in the order of the plan's swap-in queue.
        sample_seconds: `[samples]`, when memory changed or was sampled, ascending.
        sample_bytes: `[samples]`, device bytes in use from that time on.
    """

    seconds: float
    compute: Seconds
    swap_out: Seconds
    swap_in: Seconds
    sample_seconds: Seconds
    sample_bytes: NDArray[np.int64]

    def __repr__(self) -> str:
        """One line, because a notebook would print the default repr, which is pages of numbers."""
        return (
            f"<Timeline of {self.seconds:.4g} s, {self.stall_seconds:.4g} s of it waiting: {len(self.compute)} ops, "
            f"{len(self.swap_out)} copies out, {len(self.swap_in)} in>"
        )

    @property
    def peak_bytes(self) -> int:
        """The most device memory in use at any sample."""
        return int(self.sample_bytes.max(initial=0))

    @property
    def stall_seconds(self) -> float:
        """Time in which the compute stream waits."""
        return max(0.0, self.seconds - float((self.compute[:, 1] - self.compute[:, 0]).sum()))
