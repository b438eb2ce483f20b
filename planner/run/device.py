"""What an executor asks of a device: two slabs of memory and three streams.

A device is one file that meets these protocols. Streams work through what they are given in order; what lies in
different streams is ordered by events alone. The executor gives a copy to its stream only after everything that
the copy waits for has been given to the other streams.
"""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor

#: A moment in a stream, used again in every step; only the device that made it knows what it is.
Event = Any
#: A time stamp; only the device that made it knows what it is.
Mark = Any


class Stream(Protocol):
    """Work done in order. The compute stream also runs the kernels that the executor calls."""

    def wait(self, event: Event) -> None:
        """What is given from now on starts after `event`."""

    def record(self, event: Event) -> None:
        """Let `event` happen when everything given so far is done."""

    def copy(self, target: Tensor, source: Tensor) -> None:
        """Copy bytes, both `[n]` of uint8, between the arena and the host slab; the span of time is kept."""

    def fill(self, target: Tensor, byte: int) -> None:
        """Set every byte of `target`, `[n]` of uint8."""

    def delay(self, seconds: float) -> None:
        """Do nothing for a while."""


class Device(Protocol):
    """A device with an arena of exactly the bytes that were asked for, and a host slab likewise.

    Args:
        arena, host: `[bytes]` of uint8; zero at first.
        compute, swap_out, swap_in: the streams. The thread that runs the executor calls kernels in `compute`.
    """

    arena: Tensor
    host: Tensor

    @property
    def compute(self) -> Stream:
        """The stream of the kernels."""

    @property
    def swap_out(self) -> Stream:
        """The stream of copies from the arena to the host slab."""

    @property
    def swap_in(self) -> Stream:
        """The stream of copies from the host slab to the arena."""

    def event(self) -> Event:
        """Make an event."""

    def mark(self) -> Mark:
        """Stamp the time in the compute stream; called after every kernel, so as cheap as can be."""

    def begin(self) -> Mark:
        """Start a step: no event has happened, no copy has been made. Returns the time."""

    def copied(self) -> tuple[int, int]:
        """How many swap-outs of this step are done and how many swap-ins have begun; from any thread, and cheap."""

    def synchronize(self) -> None:
        """Return when all streams are empty; raises what went wrong in one of them."""

    def seconds(self, start: Mark, marks: list[Mark]) -> list[float]:
        """Seconds from `start` to each mark."""

    def copy_seconds(self, start: Mark) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        """Start and stop of every copy of this step, in the order given: swap-outs, swap-ins."""

    def close(self) -> None:
        """End the streams, whatever they are doing, and give the memory back."""
