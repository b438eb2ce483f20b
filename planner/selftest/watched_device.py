"""A device whose waits are counted, and on which one can be left out, so that a test of races shows what it would find.

What the wait was for is then late: the work before the awaited record is delayed, in its own stream.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any, NamedTuple

from planner.run import RuntimeDevice

_STREAMS = ("compute", "swap_out", "swap_in")
LATE_SECONDS = 0.01
_PROBE_SECONDS = 0.02


class StreamWork(NamedTuple):
    """A piece of work in a stream, by its number in a step, from 1."""

    stream: str
    number: int


class WatchedDevice:
    """A device with counted waits.

    Args:
        device: does all the work.

    Attributes:
        awaited: by wait of the step in progress or the last one, the last work before the record it waits for; None
            where there is none.
    """

    def __init__(self, device: RuntimeDevice) -> None:
        self._device = device
        self.change()
        self.awaited: list[StreamWork | None] = []
        self._before: dict[int, StreamWork] = {}
        self.compute, self.swap_out, self.swap_in = (
            _WatchedStream(name, getattr(device, name), self) for name in _STREAMS
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def change(self, dropped: int = 0, late: StreamWork | None = None, late_seconds: float = LATE_SECONDS) -> None:
        """Say what is changed in the next steps.

        Args:
            dropped: number of a wait in a step, from 1, that is left out; 0 for none.
            late: the work that is delayed; None for none.
            late_seconds: how long.
        """
        self._dropped, self._late, self._late_seconds = dropped, late, late_seconds

    def needed(self, *, in_caller: bool) -> dict[int, StreamWork]:
        """By number of a wait of the last step, from 1, the work it waits for, where a stream could be ahead of it.

        Args:
            in_caller: whether the compute stream works in the thread that calls it.
        """
        return {
            number: work
            for number, work in enumerate(self.awaited, 1)
            if work is not None and not (in_caller and work.stream == "compute")
        }

    def begin(self) -> Any:
        """Start a step."""
        self.awaited.clear()
        self._before.clear()
        for name in _STREAMS:
            getattr(self, name).done = 0
        return self._device.begin()

    def records(self, event: Any, work: StreamWork) -> None:
        """Note the last work before an event is recorded."""
        self._before[id(event)] = work

    def drops(self, event: Any) -> bool:
        """Count a wait for an event; returns whether it is left out."""
        self.awaited.append(self._before.get(id(event)))
        return len(self.awaited) == self._dropped

    def lateness(self, work: StreamWork) -> float:
        """Seconds by which a piece of work is delayed."""
        return self._late_seconds if work == self._late else 0.0


class _WatchedStream:
    def __init__(self, name: str, stream: Any, device: WatchedDevice) -> None:
        self._name, self._stream, self._owner, self.done = name, stream, device, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def wait(self, event: Any) -> None:
        if not self._owner.drops(event):
            self._stream.wait(event)

    def record(self, event: Any) -> None:
        if self.done:
            self._owner.records(event, StreamWork(self._name, self.done))
        self._stream.record(event)

    def copy(self, target: Any, source: Any) -> None:
        self._begin()
        self._stream.copy(target, source)

    def launch(self, function: Any, args: Any, kwargs: Any) -> None:
        self._begin()
        self._stream.launch(function, args, kwargs)

    def _begin(self) -> None:
        self.done += 1
        if seconds := self._owner.lateness(StreamWork(self._name, self.done)):
            self._stream.delay(seconds)


def waits_itself(device: RuntimeDevice) -> bool:
    """Whether the compute stream works in the thread that calls it, so that nobody can be ahead of it."""
    device.compute.delay(0.0)  # a GPU loads a kernel at its first call
    begin = perf_counter()
    device.compute.delay(_PROBE_SECONDS)
    blocked = perf_counter() - begin >= _PROBE_SECONDS
    device.synchronize()
    return blocked
