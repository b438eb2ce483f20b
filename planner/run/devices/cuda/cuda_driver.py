"""What an accelerator device asks of PyTorch, on a CUDA GPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
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
#: What PyTorch warns of where the host waits for the GPU.
_WAITED = "synchronizing CUDA operation"


class CudaDriver:
    """The current CUDA GPU of the calling thread."""

    def __init__(self) -> None:
        self._device = torch.device("cuda", torch.cuda.current_device())
        self._cap = MemoryCap(self._device)  # before anything is allocated for a run
        self._patterns: dict[Stream, Tensor] = {}
        self._pool: Any = None  # of the memory that graphs allocate
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

    def graph(self, stream: Stream, issue: Callable[[], None]) -> Callable[[], None]:
        """Record what `issue` issues to a stream as a CUDA graph, without doing it.

        All graphs share the memory that their calls allocate: they are launched one after another.

        Returns:
            What launches the graph in the stream that the thread works in.

        Raises:
            RuntimeError: something cannot be recorded.
        """
        if self._pool is None:
            torch.cuda.empty_cache()  # what the same calls took before is of no use any more
            self._pool = torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(stream):
            # other threads may look at events meanwhile
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                issue()
            except BaseException:
                with suppress(RuntimeError):
                    graph.capture_end()  # or the stream could not be used any more
                raise
            graph.capture_end()
        return graph.replay

    def host_waits(self, issue: Callable[[], None]) -> bool:
        """Call `issue`, and return whether PyTorch waited for the GPU meanwhile."""
        before = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                issue()
            finally:
                torch.cuda.set_sync_debug_mode(before)
        return any(_WAITED in str(warning.message) for warning in told)

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
