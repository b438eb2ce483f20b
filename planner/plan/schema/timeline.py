"""The times of a step: one type for predictions and for measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.plan.schema.lanes import COMMUNICATION, COMPUTE, SWAP_IN, SWAP_OUT, Lane

Seconds = NDArray[np.float64]
#: By lane, `[entries, 2]`: start and stop of each entry of its queue, in seconds.
Spans = Mapping[Lane, Seconds]


class MemorySamples(NamedTuple):
    """Bytes in use on a device over a step.

    Args:
        seconds: `[samples]`, when memory changed or was sampled, ascending.
        bytes: `[samples]`, device bytes in use from that time on.
    """

    seconds: Seconds
    bytes: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Timeline:
    """Spans on every lane and bytes over time on every device, in seconds from the start of the step.

    Args:
        seconds: length of the step.
        spans: by lane of the plan, `[entries, 2]`, start and stop of each entry of its queue.
        memory: by number of the device, its bytes in use.
    """

    seconds: float
    spans: Spans
    memory: Mapping[int, MemorySamples]

    @classmethod
    def of_device(
        cls,
        seconds: float,
        compute: Seconds,
        swap_out: Seconds,
        swap_in: Seconds,
        sample_seconds: Seconds,
        sample_bytes: NDArray[np.int64],
        communication: Seconds | None = None,
    ) -> Timeline:
        """The timeline of a plan that has the lanes of one device alone.

        Args:
            seconds: length of the step.
            compute, swap_out, swap_in: `[entries, 2]`, the spans of these lanes.
            sample_seconds, sample_bytes: `[samples]`, as in `MemorySamples`.
            communication: `[collectives, 2]`, if the plan has the lane.
        """
        spans = {COMPUTE: compute, SWAP_OUT: swap_out, SWAP_IN: swap_in}
        if communication is not None:
            spans[COMMUNICATION] = communication
        return cls(seconds, spans, {COMPUTE.device: MemorySamples(sample_seconds, sample_bytes)})

    def __eq__(self, other: object) -> bool:
        """Whether all times and all bytes are the same."""
        if not isinstance(other, Timeline):
            return NotImplemented
        if self.seconds != other.seconds or (self.spans.keys(), self.memory.keys()) != (
            other.spans.keys(), other.memory.keys(),
        ):  # fmt: skip
            return False
        spans = ((self.spans[lane], other.spans[lane]) for lane in self.spans)
        samples = (
            pair for device in self.memory for pair in zip(self.memory[device], other.memory[device], strict=True)
        )
        return all(np.array_equal(ours, theirs) for ours, theirs in (*spans, *samples))

    def __hash__(self) -> int:
        """Of timelines that are equal, equal."""
        return hash(self.seconds)

    def __repr__(self) -> str:
        """One line, because a notebook would print the default repr, which is pages of numbers."""
        return (
            f"<Timeline of {self.seconds:.4g} s, {self.stall_seconds:.4g} s of it waiting: {len(self.compute)} ops, "
            f"{len(self.swap_out)} copies out, {len(self.swap_in)} in>"
        )

    @property
    def compute(self) -> Seconds:
        """`[ops, 2]`, start and stop of the op in each slot."""
        return self.spans[COMPUTE]

    @property
    def swap_out(self) -> Seconds:
        """`[swap-outs, 2]`, in the order of the plan's swap-out queue."""
        return self.spans[SWAP_OUT]

    @property
    def swap_in(self) -> Seconds:
        """`[swap-ins, 2]`, in the order of the plan's swap-in queue."""
        return self.spans[SWAP_IN]

    @property
    def communication(self) -> Seconds:
        """`[collectives, 2]`, in the order of the plan's communication queue; no rows without that lane.

        In `compute`, what the lane does takes no time.
        """
        return self.spans.get(COMMUNICATION, np.zeros((0, 2)))

    @property
    def sample_seconds(self) -> Seconds:
        """`[samples]`, when the memory of device 0 changed or was sampled, ascending."""
        return self.memory[COMPUTE.device].seconds

    @property
    def sample_bytes(self) -> NDArray[np.int64]:
        """`[samples]`, bytes in use on device 0 from that time on."""
        return self.memory[COMPUTE.device].bytes

    @property
    def peak_bytes(self) -> int:
        """The most memory of device 0 in use at any sample."""
        return int(self.sample_bytes.max(initial=0))

    @property
    def stall_seconds(self) -> float:
        """Time in which the compute lane waits."""
        return max(0.0, self.seconds - float((self.compute[:, 1] - self.compute[:, 0]).sum()))
