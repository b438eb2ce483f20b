"""The streams of the CPU: the calling thread for kernels, and a thread for each of the others.

An event is what it is for CUDA: a wait is for its latest record at the time of the call, and for nothing before any.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

import torch
from torch import Tensor

from planner.run.devices.link import PacedLink

_Work = tuple[Callable[..., None], tuple[Any, ...]]
Span = tuple[float, float]
_PATIENCE = 0.1  # seconds


class CpuEvent:
    """A point in a stream; `latest` is set when the stream reaches the last record of it, None before any."""

    __slots__ = ("latest",)

    def __init__(self) -> None:
        self.latest: Event | None = None


_DONE = Event()  # of records in the compute stream, whose work so far is always done
_DONE.set()


class StreamRecords:
    """The records of a step in the streams with threads, and the first failure of one, which ends all waits.

    Args:
        check_cancelled: called periodically while the compute stream waits; may raise.

    Attributes:
        failure: None as long as all streams work.
    """

    def __init__(self, check_cancelled: Callable[[], object]) -> None:
        self._records: list[Event] = []
        self._check_cancelled = check_cancelled
        self.failure: BaseException | None = None

    def clear(self) -> None:
        """Forget all records."""
        self._records.clear()

    def record(self, event: CpuEvent) -> Event:
        """The next record of an event, to be set by a stream."""
        event.latest = Event()
        self._records.append(event.latest)
        return event.latest

    def wait(self, record: Event) -> None:
        """Block this thread until a stream reaches a record, or fails."""
        if self.failure is None:  # otherwise the record may have been issued after that, to a stream that has ended
            record.wait()
        if self.failure is not None:
            raise RuntimeError("a stream of the device has stopped") from self.failure

    def wait_patiently(self, record: Event) -> None:
        """The same for the thread that runs the kernels, checking for cancellation periodically."""
        while self.failure is None and not record.wait(_PATIENCE):
            self._check_cancelled()
        self.wait(record)

    def fail(self, error: BaseException | None) -> None:
        """Record a failure and wake up all waiting threads."""
        self.failure = self.failure or error or _Closed()
        for record in tuple(self._records):
            record.set()


class _Closed(Exception):  # noqa: N818 it is the reason for an end, not an error
    """The device is being closed."""


class CpuComputeStream:
    """The calling thread: all work is done immediately."""

    def __init__(self, records: StreamRecords) -> None:
        self._await = records.wait_patiently

    def wait(self, event: CpuEvent) -> None:
        """Block until the event's latest record is reached."""
        if event.latest is not None:
            self._await(event.latest)

    def record(self, event: CpuEvent) -> None:
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


class _CpuThreadStream:
    """A queue of work and the thread that does it."""

    def __init__(self, records: StreamRecords, name: str) -> None:
        self.spans: list[Span] = []
        self._records = records
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._thread = Thread(target=self._serve, name=f"stowage {name}", daemon=True)

    def wait(self, event: CpuEvent) -> None:
        """Start later entries of the queue after the event's latest record."""
        if event.latest is not None:
            self._put((self._records.wait, (event.latest,)))

    def record(self, event: CpuEvent) -> None:
        """Record the event when the queue reaches this point."""
        self._put((self._records.record(event).set, ()))

    def fill(self, target: Tensor, byte: int) -> None:
        """Fill in queue order."""
        self._put((target.numpy().fill, (byte,)))

    def delay(self, seconds: float) -> None:
        """Sleep in queue order."""
        self._put((time.sleep, (seconds,)))

    def _put(self, work: _Work) -> None:
        self._queue.put(work)

    def join(self, timeout: float | None = None) -> None:
        """Wait for the thread to end."""
        self._queue.put(None)
        if self._thread.ident is not None:
            self._thread.join(timeout)

    def _serve(self) -> None:
        while (work := self._queue.get()) is not None:
            function, args = work
            try:
                function(*args)
            except BaseException as error:
                self._records.fail(error)
                return


class CpuCopyStream(_CpuThreadStream):
    """A thread that copies in one direction; nothing delays its end once the device has failed or closed."""

    def __init__(self, records: StreamRecords, link: PacedLink, direction: int) -> None:
        super().__init__(records, ("swap-out", "swap-in")[direction])
        self.begun = 0
        self._link, self._direction = link, direction
        self._thread.start()

    def copy(self, target: Tensor, source: Tensor) -> None:
        """Copy at the link's pace."""
        self._put((self._copy, (target.numpy(), source.numpy())))

    def _copy(self, target: Any, source: Any) -> None:
        start = time.perf_counter()
        self.begun += 1
        self._link.copy(target, source, self._direction)
        self.spans.append((start, time.perf_counter()))


class CpuCommunicationStream(_CpuThreadStream):
    """A thread that exchanges tensors with other workers, from the first time that it is asked to.

    Whoever waits for it does so with patience, while it waits for the peers as long as they take. So a step in which a
    peer never comes can be cancelled, and one whose peer is lost ends with the error that this thread was raised.
    """

    def __init__(self, records: StreamRecords) -> None:
        super().__init__(records, "communication")

    @property
    def started(self) -> bool:
        """Whether it has been asked for anything yet."""
        return self._thread.ident is not None

    def copy(self, target: Tensor, source: Tensor) -> None:
        """Copy in queue order."""
        self.launch(target.copy_, (source,), {})

    def launch(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Call in queue order."""
        self._put((self._call, (function, args, kwargs)))

    def _put(self, work: _Work) -> None:
        if not self.started:
            self._thread.start()
        super()._put(work)

    def _call(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        start = time.perf_counter()
        with torch.inference_mode():  # of the thread that issues it
            function(*args, **kwargs)
        self.spans.append((start, time.perf_counter()))
