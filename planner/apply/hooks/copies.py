"""Copies of storages to the host and back: on a stream of their own on a GPU, at once on a CPU."""

from __future__ import annotations

from typing import Any, Protocol

import torch


class HostBuffer:
    """A host copy of a storage.

    Args:
        size: in bytes.
        pinned: whether its pages are locked, as copies that run beside compute need it.

    Attributes:
        bytes: the copy, a tensor of bytes.
        done: the event after which the last copy from or to it is done; None if there is none to wait for.
    """

    def __init__(self, size: int, *, pinned: bool) -> None:
        self.bytes = torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=pinned)
        self.done: Any = None


class Copies(Protocol):
    """Copies between a device and the host."""

    pinned: bool

    def out(self, source: torch.Tensor, buffer: HostBuffer) -> None:
        """Begin to copy the bytes of a storage to the host."""

    def back(self, buffer: HostBuffer) -> torch.Tensor:
        """Begin to copy a storage to the device, into new memory."""

    def wait(self, buffer: HostBuffer) -> None:
        """Let what is computed from now on wait for the last copy."""


class PlainCopies:
    """Copies that are done when the call returns.

    Args:
        device: where the storages are.
    """

    pinned = False

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def out(self, source: torch.Tensor, buffer: HostBuffer) -> None:
        """Copy the bytes of a storage to the host."""
        buffer.bytes.copy_(source)

    def back(self, buffer: HostBuffer) -> torch.Tensor:
        """Copy a storage to the device, into new memory."""
        return torch.empty_like(buffer.bytes, device=self._device).copy_(buffer.bytes)

    def wait(self, buffer: HostBuffer) -> None:
        """Return at once."""


class StreamCopies:
    """Copies on two streams of their own, one for each direction; buffers are pinned.

    Memory is allocated and freed on the stream that computes, which waits for a copy before memory of it is freed.

    Args:
        device: a CUDA device.
    """

    pinned = True

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._to_host, self._to_device = (torch.cuda.Stream(device) for _ in range(2))  # type: ignore[no-untyped-call]

    def out(self, source: torch.Tensor, buffer: HostBuffer) -> None:
        """Begin to copy the bytes of a storage to the host, once what is computed so far is done."""
        self._begin(self._to_host, buffer, buffer.bytes, source)

    def back(self, buffer: HostBuffer) -> torch.Tensor:
        """Begin to copy a storage to the device, into new memory."""
        target = torch.empty(len(buffer.bytes), dtype=torch.uint8, device=self._device)
        self._begin(self._to_device, buffer, target, buffer.bytes)
        return target

    def wait(self, buffer: HostBuffer) -> None:
        """Let what is computed from now on wait for the last copy from or to a buffer."""
        if buffer.done is not None:
            torch.cuda.current_stream(self._device).wait_event(buffer.done)

    def _begin(self, stream: torch.cuda.Stream, buffer: HostBuffer, target: torch.Tensor, source: torch.Tensor) -> None:
        stream.wait_stream(torch.cuda.current_stream(self._device))
        if buffer.done is not None:
            stream.wait_event(buffer.done)
        with torch.cuda.stream(stream):
            target.copy_(source, non_blocking=True)
            buffer.done = stream.record_event()


def copies_for(device: torch.device) -> Copies:
    """Copies between a device and the host."""
    return StreamCopies(device) if device.type == "cuda" else PlainCopies(device)
