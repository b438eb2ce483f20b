"""The device interface of the executor: two slabs of memory and three streams.

A device is one file that implements these protocols. Each stream processes its work in order; work in different streams
is ordered by events alone. The executor issues a copy only after everything that the copy waits for has been issued to
the other streams.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor

#: A point in a stream, reused in every step; opaque to everything but the device that made it.
Event = Any
#: A time stamp; opaque to everything but the device that made it.
Mark = Any


class RuntimeStream(Protocol):
    """Work done in order."""

    def wait(self, event: Event) -> None:
        """Start work issued from now on after `event`, which is recorded before this call."""

    def record(self, event: Event) -> None:
        """Set `event` when all work issued so far is done."""

    def copy(self, target: Tensor, source: Tensor) -> None:
        """Copy bytes, both `[n]` of uint8, between the arena and the host slab; start and stop times are recorded."""

    def fill(self, target: Tensor, byte: int) -> None:
        """Set every byte of `target`, `[n]` of uint8."""

    def delay(self, seconds: float) -> None:
        """Do nothing for a while."""


class ComputeStream(RuntimeStream, Protocol):
    """The stream of the kernels."""

    def launch(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Call a function on tensors of the slabs."""


class RuntimeDevice(Protocol):
    """A device with an arena and a host slab of exactly the requested sizes.

    Args:
        arena, host: `[bytes]` of uint8; zero at first.
        compute, swap_out, swap_in: the streams.
    """

    arena: Tensor
    host: Tensor

    @property
    def compute(self) -> ComputeStream:
        """The stream of the kernels."""

    @property
    def swap_out(self) -> RuntimeStream:
        """The stream of copies from the arena to the host slab."""

    @property
    def swap_in(self) -> RuntimeStream:
        """The stream of copies from the host slab to the arena."""

    def event(self) -> Event:
        """Make an event."""

    def mark(self) -> Mark:
        """Stamp the time in the compute stream; called after every kernel, so it must be cheap."""

    def begin(self) -> Mark:
        """Start a step: clears all events and recorded copies. Returns the time."""

    def scratch_bytes(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
        """Launch a function, and return the most bytes of device memory outside the arena that it held at once."""

    def copied(self) -> tuple[int, int]:
        """The numbers of swap-outs of this step that are done and of swap-ins that have begun; cheap, thread-safe."""

    def synchronize(self) -> None:
        """Return when all streams are empty; raises if one of them failed."""

    def seconds(self, start: Mark, marks: list[Mark]) -> list[float]:
        """Seconds from `start` to each mark."""

    def copy_seconds(self, start: Mark) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        """Start and stop of every copy of this step in issue order: swap-outs, swap-ins."""

    def close(self) -> None:
        """End the streams, whatever they are doing, and free the memory."""
