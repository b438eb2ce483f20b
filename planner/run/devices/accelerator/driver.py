"""What an accelerator device asks of PyTorch for its type of hardware: streams, events and memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from torch import Tensor

from planner.run.devices.accelerator.device_memory import DeviceMemory

#: A stream with the interface of `torch.Stream`.
Stream = Any
#: An event with the interface of `torch.Event`.
Event = Any


class PinnedMemory(Protocol):
    """Host memory that the accelerator copies to and from by itself.

    Args:
        bytes: `[n]` of uint8; zero at first.
    """

    @property
    def bytes(self) -> Tensor:
        """The memory."""

    def release(self) -> None:
        """Unpin the memory, which no stream uses any more; it is freed with its last view."""


class Driver(Protocol):
    """An accelerator, through PyTorch."""

    def stream(self) -> Stream:
        """Make a stream, which is not ordered with the caller's."""

    def event(self, *, timed: bool) -> Event:
        """Make an event; only a timed one knows when it was reached."""

    def caller_stream(self) -> Stream:
        """The stream of what the calling thread does outside of the device's streams."""

    def work_in(self, stream: Stream | None) -> None:
        """Have the calling thread issue what it does to a stream, until it is called with None for the one before.

        Calling a function in the stream that the thread works in costs nothing beside the call.
        """

    def call(
        self, stream: Stream, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """Call a function on tensors of the accelerator, whose kernels are issued to a stream."""

    def graph(self, stream: Stream, issue: Callable[[], None]) -> Callable[[], None]:
        """Record what `issue` issues to a stream, without doing it; the stream has nothing to do.

        Returns:
            What issues all of it to the stream that the thread works in.

        Raises:
            RuntimeError: something cannot be recorded.
        """

    def host_waits(self, issue: Callable[[], None]) -> bool:
        """Call `issue`, and return whether the host waited for the accelerator meanwhile."""

    def fill(self, stream: Stream, target: Tensor, byte: int) -> None:
        """Issue the filling of the accelerator's or of pinned memory to a stream.

        PyTorch's own fill of a tensor of the host is done at once, whatever the stream.
        """

    def sleep(self, stream: Stream, seconds: float) -> None:
        """Issue a pause to a stream."""

    def arena(self, size: int) -> Tensor:
        """Memory of the accelerator, `[size]` of uint8, zero.

        Raises:
            StowageError: so much is not free.
        """

    def pinned(self, size: int, check_cancelled: Callable[[], object]) -> PinnedMemory:
        """Pinned host memory of exactly so many bytes, which may be none; PyTorch must know that it is pinned.

        Raises:
            StowageError: so much is not free, or may not be pinned.
        """

    def scratch_bytes(self, call: Callable[[], object]) -> int:
        """Make a call, and return the most memory that it held at once, without what it keeps for later calls."""

    def allocated_bytes(self) -> int:
        """Bytes of the accelerator's memory that PyTorch has handed out."""

    def memory(self) -> DeviceMemory:
        """What is taken of the accelerator's memory by everyone; any thread may ask."""

    def within(self, budget_bytes: int) -> AbstractContextManager[None]:
        """Within the block, let PyTorch refuse to take more memory for a run than a budget, the arena included.

        What was taken before this driver was made does not count.
        """
