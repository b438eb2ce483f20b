"""The CPU as a device: an arena and a host slab in memory, and a thread for each direction of copies.

Kernels run on the thread that calls them, with PyTorch's own threads; the copies take one core each while they run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

import numpy as np
import torch
from torch import Tensor

from planner.errors import StowageError
from planner.machine.types import Link
from planner.run.link import PacedLink

_Work = tuple[Callable[..., None], tuple[Any, ...]]
Span = tuple[float, float]
_ALIGNMENT = 64  # of what PyTorch allocates
_PATIENCE = 0.1  # seconds
_TOUCHED_BYTES = 2**28  # of a slab, between two looks whether to go on


class CpuDevice:
    """Device memory of exactly `arena_bytes`, host memory of exactly `host_bytes`, and three streams.

    Args:
        arena_bytes, host_bytes: sizes of the two slabs.
        link: pace of the copies; None copies as fast as memory allows.
        impatient: asked now and then while memory is made and while the compute stream waits; it may raise, which
            ends that.

    Raises:
        StowageError: there is not that much memory.
    """

    def __init__(
        self,
        arena_bytes: int,
        host_bytes: int,
        link: Link | None = None,
        impatient: Callable[[], object] = lambda: None,
    ) -> None:
        self.arena = _slab(arena_bytes, impatient)
        self.host = _slab(host_bytes, impatient)
        self._events: list[Event] = []
        self._failure: BaseException | None = None
        self._impatient = impatient
        self._idle = (self.event(), self.event())
        paced = PacedLink(link, lambda: self._failure is not None)
        self.compute = _ComputeStream(self)
        self.swap_out = _CopyStream(self, paced, 0)
        self.swap_in = _CopyStream(self, paced, 1)
        self.mark = time.perf_counter

    def event(self) -> Event:
        """Make an event."""
        self._events.append(Event())
        return self._events[-1]

    def begin(self) -> float:
        """Start a step."""
        for event in self._events:
            event.clear()
        self.swap_out.spans.clear()
        self.swap_in.spans.clear()
        self.swap_in.begun = 0
        return time.perf_counter()

    def copied(self) -> tuple[int, int]:
        """How many swap-outs of this step are done and how many swap-ins have begun."""
        return len(self.swap_out.spans), self.swap_in.begun

    def synchronize(self) -> None:
        """Return when both copy streams are empty.

        Raises:
            RuntimeError: a copy failed; its cause is what went wrong.
        """
        for stream, event in zip((self.swap_out, self.swap_in), self._idle, strict=True):
            event.clear()
            stream.record(event)
            self.await_patiently(event)

    def seconds(self, start: float, marks: list[float]) -> list[float]:
        """Seconds from `start` to each mark."""
        return [mark - start for mark in marks]

    def copy_seconds(self, start: float) -> tuple[list[Span], list[Span]]:
        """Start and stop of every copy of this step."""
        outs, ins = ([(a - start, b - start) for a, b in s.spans] for s in (self.swap_out, self.swap_in))
        return outs, ins

    def close(self) -> None:
        """End the threads, whatever they wait for, and give the memory back."""
        self.fail(None)
        self.swap_out.join()
        self.swap_in.join()
        self.arena = self.host = torch.empty(0, dtype=torch.uint8)

    def await_event(self, event: Event) -> None:
        """Block this thread until the event happens or a stream fails."""
        if self._failure is None:  # else the event may have been cleared after the failure had set it
            event.wait()
        if self._failure is not None:
            raise RuntimeError("a stream of the device has stopped") from self._failure

    def await_patiently(self, event: Event) -> None:
        """The same for the thread that runs the kernels, which may lose its patience."""
        while self._failure is None and not event.wait(_PATIENCE):
            self._impatient()
        self.await_event(event)

    def fail(self, error: BaseException | None) -> None:
        """Let nothing wait any longer."""
        self._failure = self._failure or error or _Closed()
        for event in self._events:
            event.set()


class _Closed(Exception):  # noqa: N818 it is the reason for an end, not an error
    """The device is being closed."""


class _ComputeStream:
    """The calling thread: what it is given is done at once."""

    def __init__(self, device: CpuDevice) -> None:
        self._await = device.await_patiently

    def wait(self, event: Event) -> None:
        """Block until the event happens."""
        self._await(event)

    def record(self, event: Event) -> None:
        """Everything given so far is done already."""
        event.set()

    def copy(self, target: Tensor, source: Tensor) -> None:
        """Copy at once."""
        target.copy_(source)

    def fill(self, target: Tensor, byte: int) -> None:
        """Fill at once."""
        target.fill_(byte)

    def delay(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)


class _CopyStream:
    """A queue of work and the thread that does it."""

    def __init__(self, device: CpuDevice, link: PacedLink, direction: int) -> None:
        self.spans: list[Span] = []
        self.begun = 0
        self._device, self._link, self._direction = device, link, direction
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        name = ("stowage swap-out", "stowage swap-in")[direction]
        self._thread = Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def wait(self, event: Event) -> None:
        """What follows in the queue starts after the event."""
        self._queue.put((self._device.await_event, (event,)))

    def record(self, event: Event) -> None:
        """The event happens when the queue has come this far."""
        self._queue.put((event.set, ()))

    def copy(self, target: Tensor, source: Tensor) -> None:
        """Copy at the link's pace."""
        self._queue.put((self._copy, (target.numpy(), source.numpy())))

    def fill(self, target: Tensor, byte: int) -> None:
        """Fill in turn."""
        self._queue.put((target.numpy().fill, (byte,)))

    def delay(self, seconds: float) -> None:
        """Sleep in turn."""
        self._queue.put((time.sleep, (seconds,)))

    def join(self) -> None:
        """Wait for the thread to end; nothing holds it up once the device has failed or closed."""
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


def _slab(size: int, impatient: Callable[[], object]) -> Tensor:
    """Memory that no kernel can resize, as PyTorch's own may be, and that begins where PyTorch's would."""
    try:
        memory = np.empty(size + _ALIGNMENT, np.uint8)
    except MemoryError as error:
        raise StowageError(f"there is no memory for a slab of {size} bytes; give a smaller budget") from error
    first = -memory.ctypes.data % _ALIGNMENT
    slab = torch.from_numpy(memory[first : first + size])
    for part in slab.split(_TOUCHED_BYTES):  # type: ignore[no-untyped-call]
        impatient()
        part.zero_()  # touched now, not while a step is timed
    return slab
