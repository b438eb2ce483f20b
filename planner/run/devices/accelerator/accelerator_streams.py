"""Streams of an accelerator: everything is issued at once, and done in order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

from planner.run.devices.accelerator.driver import Driver, Event

Span = tuple[float, float]


class AcceleratorStream:
    """A stream of a driver.

    Args:
        driver: makes it.

    Attributes:
        stream: PyTorch's.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver, self.stream = driver, driver.stream()

    def wait(self, event: Event) -> None:
        """Start work issued from now on after the latest record of an event at the time of this call."""
        self.stream.wait_event(event)

    def record(self, event: Event) -> None:
        """Record an event."""
        self.stream.record_event(event)

    def launch(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Call a function whose kernels are issued to this stream."""
        self._driver.call(self.stream, function, args, kwargs)

    def copy(self, target: Tensor, source: Tensor) -> None:
        """Issue a copy."""
        self._driver.call(self.stream, target.copy_, (source,), {"non_blocking": True})

    def fill(self, target: Tensor, byte: int) -> None:
        """Issue the filling of a tensor with a byte."""
        self._driver.fill(self.stream, target, byte)

    def delay(self, seconds: float) -> None:
        """Issue a pause."""
        self._driver.sleep(self.stream, seconds)


class TimedStream(AcceleratorStream):
    """A stream of copies or collectives, which records when each begins and ends."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._spans: list[tuple[Event, Event]] = []

    def forget(self) -> None:
        """Start with no spans; readers in other threads keep the list that they have."""
        self._spans = []

    def copy(self, target: Tensor, source: Tensor) -> None:
        """Issue a copy, timed."""
        start = self._stamp()
        super().copy(target, source)
        self._spans.append((start, self._stamp()))

    def launch(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Call a function whose kernels are issued to this stream, timed."""
        start = self._stamp()
        super().launch(function, args, kwargs)
        self._spans.append((start, self._stamp()))

    def begun(self) -> int:
        """How many have begun, or are issued and will begin as soon as the stream is free."""
        return reached([start for start, _ in self._spans])

    def done(self) -> int:
        """How many are done."""
        return reached([stop for _, stop in self._spans])

    def seconds(self, start: Event) -> list[Span]:
        """Seconds from an event to the begin and the end of each, in the order of issue."""
        return [(seconds_between(start, first), seconds_between(start, last)) for first, last in self._spans]

    def _stamp(self) -> Event:
        event = self._driver.event(timed=True)
        self.stream.record_event(event)
        return event


def reached(events: Sequence[Event]) -> int:
    """How many of the events that a stream was given, in order, it has reached."""
    return bisect_left(events, True, key=lambda event: not event.query())


def seconds_between(start: Event, stop: Event) -> float:
    """Seconds from one timed event to another."""
    milliseconds: float = start.elapsed_time(stop)
    return milliseconds / 1e3
