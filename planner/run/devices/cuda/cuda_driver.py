"""What an accelerator device asks of PyTorch, on a CUDA GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from planner.program import backend_of
from planner.run.devices.accelerator.device_memory import DeviceMemory
from planner.run.devices.accelerator.driver import Event, PinnedMemory, Stream
from planner.run.devices.cuda.memory_cap import MemoryCap
from planner.run.devices.cuda.pinned_memory import RegisteredMemory

#: Cycles of a GPU's clock in a second, roughly: pauses need not be exact.
_CYCLES_PER_SECOND = 1.5e9
_PATTERN_BYTES = 2**20


class CudaDriver:
    """The current CUDA GPU of the calling thread."""

    def __init__(self) -> None:
        self._device = torch.device("cuda", torch.cuda.current_device())
        self._cap = MemoryCap(self._device)  # before anything is allocated for a run
        self._patterns: dict[Stream, Tensor] = {}
        self._working: Stream | None = None
        self._before: Stream | None = None

    def stream(self) -> Stream:
        """Make a stream, which is not ordered with the caller's."""
        return torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]

    def event(self, *, timed: bool) -> Event:
        """Make an event; only a timed one knows when it was reached."""
        return torch.cuda.Event(enable_timing=timed)  # type: ignore[no-untyped-call]

    def caller_stream(self) -> Stream:
        """The stream of what the calling thread does outside of the device's streams."""
        return torch.cuda.current_stream(self._device)

    def work_in(self, stream: Stream | None) -> None:
        """Have the calling thread issue what it does to a stream, until it is called with None for the one before."""
        if stream is not None and self._working is None:
            self._before = torch.cuda.current_stream(self._device)
        wanted = self._before if stream is None else stream
        if wanted is not None:
            torch.cuda.set_stream(wanted)
        self._working = stream

    def call(
        self, stream: Stream, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """Call a function on tensors of the GPU, whose kernels are issued to a stream."""
        if stream is self._working:
            function(*args, **kwargs)
            return
        with torch.cuda.stream(stream):  # takes microseconds
            function(*args, **kwargs)

    def fill(self, stream: Stream, target: Tensor, byte: int) -> None:
        """Issue the filling of the GPU's or of pinned memory to a stream; the latter's, as copies of a pattern."""
        with torch.cuda.stream(stream):
            if target.is_cuda:
                target.fill_(byte)
                return
            pattern = self._patterns.get(stream)
            if pattern is None:
                pattern = torch.empty(_PATTERN_BYTES, dtype=torch.uint8, device=self._device)
                self._patterns[stream] = pattern
            pattern.fill_(byte)
            for part in target.split(_PATTERN_BYTES):  # type: ignore[no-untyped-call]
                part.copy_(pattern[: len(part)], non_blocking=True)

    def sleep(self, stream: Stream, seconds: float) -> None:
        """Issue a pause to a stream."""
        with torch.cuda.stream(stream):
            torch.cuda._sleep(int(seconds * _CYCLES_PER_SECOND))  # type: ignore[no-untyped-call]

    def arena(self, size: int) -> Tensor:
        """Memory of the GPU, `[size]` of uint8, zero.

        Raises:
            StowageError: so much is not free.
        """
        return backend_of("cuda").slab(size, lambda: None)

    def pinned(self, size: int, check_cancelled: Callable[[], object]) -> PinnedMemory:
        """Pinned host memory of exactly so many bytes, which may be none.

        Raises:
            StowageError: so much is not free, or may not be pinned.
        """
        return RegisteredMemory(size, check_cancelled)

    def scratch_bytes(self, call: Callable[[], object]) -> int:
        """Make a call, and return the most memory that it held at once, without what it keeps for later calls."""
        return backend_of("cuda").scratch_bytes(call)

    def allocated_bytes(self) -> int:
        """Bytes of the GPU's memory that PyTorch has handed out."""
        return int(torch.cuda.memory_allocated(self._device))

    def memory(self) -> DeviceMemory:
        """What is taken of the GPU's memory by everyone."""
        free, total = torch.cuda.mem_get_info(self._device)
        return DeviceMemory(total - free, int(torch.cuda.memory_reserved(self._device)), self._cap.before)

    def within(self, budget_bytes: int) -> AbstractContextManager[None]:
        """Within the block, let PyTorch refuse to take more of the GPU for a run than a budget."""
        return self._cap.within(budget_bytes)
