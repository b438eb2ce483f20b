"""The CPU as a device: an arena and a host slab in memory, and a thread for each direction of copies.

An event is what it is for CUDA: a wait is for its latest record at the time of the call, and for nothing before any.

Kernels run on the thread that calls them, with PyTorch's own threads; the copies take one core each while they run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

import numpy as np
import torch
from torch import Tensor

from planner.errors import StowageError
from planner.machine import Link
from planner.program import backend_of
from planner.run.devices.cpu_rng_states import CpuRngStates
from planner.run.devices.link import PacedLink
from planner.run.devices.memcmp import areas_differ

_Work = tuple[Callable[..., None], tuple[Any, ...]]
Span = tuple[float, float]
_ALIGNMENT = 64  # of PyTorch's allocations
_PATIENCE = 0.1  # seconds
_TOUCHED_BYTES = 2**28  # of a slab, between two checks for cancellation


class _CpuEvent:
    """A point in a stream; `latest` is set when the stream reaches the last record of it, None before any."""

    __slots__ = ("latest",)

    def __init__(self) -> None:
        self.latest: Event | None = None


_DONE = Event()  # of records in the compute stream, whose work so far is always done
_DONE.set()


class CpuDevice:
    """Device memory of exactly `arena_bytes`, host memory of exactly `host_bytes`, and three streams.

    Args:
        arena_bytes, host_bytes: sizes of the two slabs.
        link: pace of the copies; None copies as fast as memory allows.
        check_cancelled: called periodically while memory is allocated and while the compute stream waits; may raise to
            abandon that.

    Raises:
        StowageError: there is not enough memory.
    """

    name = "cpu"
    marks_ops = True
    default_generator = torch.default_generator
    rng_states = CpuRngStates
    differs = staticmethod(areas_differ)

    def __init__(
        self,
        arena_bytes: int,
        host_bytes: int,
        link: Link | None = None,
        check_cancelled: Callable[[], object] = lambda: None,
    ) -> None:
        self.arena = _slab(arena_bytes, check_cancelled)
        self.host = _slab(host_bytes, check_cancelled)
        self._events: list[_CpuEvent] = []
        self._records: list[Event] = []  # of this step, in the copy streams
        self._failure: BaseException | None = None
        self._check_cancelled = check_cancelled
        paced = PacedLink(link, lambda: self._failure is not None)
        self.compute = _CpuComputeStream(self)
        self.swap_out = _CpuCopyStream(self, paced, 0)
        self.swap_in = _CpuCopyStream(self, paced, 1)
        self.mark = time.perf_counter

    def event(self) -> _CpuEvent:
        """Make an event."""
        self._events.append(_CpuEvent())
        return self._events[-1]

    def record(self, event: _CpuEvent) -> Event:
        """The next record of an event, to be set by a copy stream."""
        event.latest = Event()
        self._records.append(event.latest)
        return event.latest

    def begin(self) -> float:
        """Start a step."""
        for event in self._events:
            event.latest = None
        self._records.clear()
        self.swap_out.spans.clear()
        self.swap_in.spans.clear()
        self.swap_in.begun = 0
        return time.perf_counter()

    def scratch_bytes(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
        """Call a function; returns the most bytes that it held at once in memory it allocated."""
        return backend_of(self.name).scratch_bytes(lambda: function(*args, **kwargs))

    @staticmethod
    def generator() -> torch.Generator:
        """Make a generator that ops may draw from."""
        return torch.Generator()

    def passed(self, marks: Sequence[float]) -> int:
        """How many of a step's marks the compute stream has passed: all, as it works in the calling thread."""
        return len(marks)

    def copied(self) -> tuple[int, int]:
        """The numbers of swap-outs of this step that are done and of swap-ins that have begun."""
        return len(self.swap_out.spans), self.swap_in.begun

    def synchronize(self) -> None:
        """Return when both copy streams are empty.

        Raises:
            RuntimeError: a copy failed; the original error is its cause.
        """
        for stream in (self.swap_out, self.swap_in):
            empty = _CpuEvent()
            stream.record(empty)
            self.compute.wait(empty)

    def seconds(self, start: float, marks: list[float]) -> list[float]:
        """Seconds from `start` to each mark."""
        return [mark - start for mark in marks]

    def copy_seconds(self, start: float) -> tuple[list[Span], list[Span]]:
        """Start and stop of every copy of this step."""
        outs, ins = ([(a - start, b - start) for a, b in s.spans] for s in (self.swap_out, self.swap_in))
        return outs, ins

    def close(self) -> None:
        """End the threads, whatever they wait for, and free the memory."""
        self.fail(None)
        self.swap_out.join()
        self.swap_in.join()
        self.arena = self.host = torch.empty(0, dtype=torch.uint8)

    def await_record(self, record: Event) -> None:
        """Block this thread until a stream reaches a record, or fails."""
        if self._failure is None:  # otherwise the record may have been issued after that, to a stream that has ended
            record.wait()
        if self._failure is not None:
            raise RuntimeError("a stream of the device has stopped") from self._failure

    def await_patiently(self, record: Event) -> None:
        """The same for the thread that runs the kernels, checking for cancellation periodically."""
        while self._failure is None and not record.wait(_PATIENCE):
            self._check_cancelled()
        self.await_record(record)

    def fail(self, error: BaseException | None) -> None:
        """Record a failure and wake up all waiting threads."""
        self._failure = self._failure or error or _Closed()
        for record in tuple(self._records):
            record.set()


class _Closed(Exception):  # noqa: N818 it is the reason for an end, not an error
    """The device is being closed."""


class _CpuComputeStream:
    """The calling thread: all work is done immediately."""

    def __init__(self, device: CpuDevice) -> None:
        self._await = device.await_patiently

    def wait(self, event: _CpuEvent) -> None:
        """Block until the event's latest record is reached."""
        if event.latest is not None:
            self._await(event.latest)

    def record(self, event: _CpuEvent) -> None:
        """Record the event: all work so far is already done."""
        event.latest = _DONE

    def launch(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Call at once."""
        function(*args, **kwargs)

    def copy(self, target: Tensor, source: Tensor) -> None:
        """Copy immediately."""
        target.copy_(source)

    def fill(self, target: Tensor, byte: int) -> None:
        """Fill immediately."""
        target.fill_(byte)

    def delay(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)


class _CpuCopyStream:
    """A queue of work and the thread that does it."""

    def __init__(self, device: CpuDevice, link: PacedLink, direction: int) -> None:
        self.spans: list[Span] = []
        self.begun = 0
        self._device, self._link, self._direction = device, link, direction
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        name = ("stowage swap-out", "stowage swap-in")[direction]
        self._thread = Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def wait(self, event: _CpuEvent) -> None:
        """Start later entries of the queue after the event's latest record."""
        if event.latest is not None:
            self._queue.put((self._device.await_record, (event.latest,)))

    def record(self, event: _CpuEvent) -> None:
        """Record the event when the queue reaches this point."""
        self._queue.put((self._device.record(event).set, ()))

    def copy(self, target: Tensor, source: Tensor) -> None:
        """Copy at the link's pace."""
        self._queue.put((self._copy, (target.numpy(), source.numpy())))

    def fill(self, target: Tensor, byte: int) -> None:
        """Fill in queue order."""
        self._queue.put((target.numpy().fill, (byte,)))

    def delay(self, seconds: float) -> None:
        """Sleep in queue order."""
        self._queue.put((time.sleep, (seconds,)))

    def join(self) -> None:
        """Wait for the thread to end; nothing delays it once the device has failed or closed."""
        self._queue.put(None)
        self._thread.join()

    def _copy(self, target: Any, source: Any) -> None:
        start = time.perf_counter()
        self.begun += 1
        self._link.copy(target, source, self._direction)
        self.spans.append((start, time.perf_counter()))

    def _serve(self) -> None:
        while (work := self._queue.get()) is not None:
            function, args = work
            try:
                function(*args)
            except BaseException as error:
                self._device.fail(error)
                return


def _slab(size: int, check_cancelled: Callable[[], object]) -> Tensor:
    """Memory aligned as PyTorch's allocations are, which kernels, unlike those, cannot resize."""
    try:
        memory = np.empty(size + _ALIGNMENT, np.uint8)
    except MemoryError as error:
        raise StowageError(f"there is no memory for a slab of {size} bytes; give a smaller budget") from error
    first = -memory.ctypes.data % _ALIGNMENT
    slab = torch.from_numpy(memory[first : first + size])
    for part in slab.split(_TOUCHED_BYTES):  # type: ignore[no-untyped-call]
        check_cancelled()
        part.zero_()  # touch the pages now, not while a step is timed
    return slab
