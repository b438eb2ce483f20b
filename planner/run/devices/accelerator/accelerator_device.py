"""An attached accelerator as a device, through the streams and events that PyTorch has for every type.

PyTorch's streams are not ordered with each other, nor with that of the calling thread, which loads the batch and reads
the outputs. So a step's streams begin after everything that the thread has issued, and the thread goes on when they are
empty.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import torch

from planner.run.devices.accelerator.accelerator_streams import (
    AcceleratorStream,
    Span,
    TimedStream,
    reached,
    seconds_between,
)
from planner.run.devices.accelerator.bit_difference import bits_differ
from planner.run.devices.accelerator.device_memory import DeviceMemory
from planner.run.devices.accelerator.driver import Driver, Event
from planner.run.devices.accelerator.graph_recorder import AcceleratorGraphRecorder

_POLL_SECONDS = 5e-5  # between two looks at whether the streams are empty


class AcceleratorDevice:
    """Memory of an accelerator of exactly `arena_bytes`, pinned host memory of exactly `host_bytes`, and four streams.

    The class of a type of accelerator adds its name, its generators, and the RNG states of its random ops.

    Args:
        driver: the accelerator.
        arena_bytes, host_bytes: sizes of the two slabs.
        check_cancelled: called periodically while memory is pinned and while the streams are waited for; may raise to
            abandon that.

    Raises:
        StowageError: there is not enough memory.
    """

    marks_ops = False
    is_far = True
    differs = staticmethod(bits_differ)

    def __init__(
        self, driver: Driver, arena_bytes: int, host_bytes: int, check_cancelled: Callable[[], object] = lambda: None
    ) -> None:
        self._driver, self._check_cancelled = driver, check_cancelled
        self.compute = AcceleratorStream(driver)
        self.swap_out, self.swap_in, self.communication = (TimedStream(driver) for _ in range(3))
        self.graph_recorder = AcceleratorGraphRecorder(driver, self.compute)
        self.arena = driver.arena(arena_bytes)
        self._pinned = driver.pinned(host_bytes, check_cancelled)  # last: nothing else would release it
        self.host = self._pinned.bytes

    @property
    def _streams(self) -> tuple[AcceleratorStream, ...]:
        return self.compute, self.swap_out, self.swap_in, self.communication

    def event(self) -> Event:
        """Make an event."""
        return self._driver.event(timed=False)

    def mark(self) -> Event:
        """Stamp the time in the compute stream."""
        event = self._driver.event(timed=True)
        self.compute.record(event)
        return event

    def passed(self, marks: Sequence[Event]) -> int:
        """How many of a step's marks the compute stream has passed."""
        return reached(marks)

    def begin(self) -> Event:
        """Start a step, after all that the calling thread has issued itself.

        Records of earlier steps are not forgotten; as those steps are over, waiting for one is no wait.
        """
        for stream in (self.swap_out, self.swap_in, self.communication):
            stream.forget()
        issued = self._driver.event(timed=True)
        self._driver.caller_stream().record_event(issued)
        for one in self._streams:
            one.wait(issued)
        self._driver.work_in(self.compute.stream)  # most of what is issued until it is synchronised
        return issued  # no stream does anything before

    def scratch_bytes(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
        """Launch a function, and return the most bytes that it held at once outside the arena."""
        return self._driver.scratch_bytes(lambda: self.compute.launch(function, args, kwargs))

    def allocated_bytes(self) -> int:
        """Bytes that PyTorch has handed out on the accelerator."""
        return self._driver.allocated_bytes()

    def memory(self) -> DeviceMemory:
        """What is taken of the accelerator's memory by everyone."""
        return self._driver.memory()

    def within(self, budget_bytes: int) -> AbstractContextManager[None]:
        """Within the block, let PyTorch refuse to take more of the accelerator's memory than a budget."""
        return self._driver.within(budget_bytes)

    def copied(self) -> tuple[int, int]:
        """The numbers of swap-outs of this step that are done and of swap-ins that have begun."""
        return self.swap_out.done(), self.swap_in.begun()

    def synchronize(self) -> None:
        """Return when all streams are empty.

        Raises:
            RuntimeError: a kernel or a copy failed.
        """
        self._driver.work_in(None)
        for stream in self._streams:
            end = self.event()
            stream.record(end)
            while not end.query():
                self._check_cancelled()
                time.sleep(_POLL_SECONDS)

    def seconds(self, start: Event, marks: list[Event]) -> list[float]:
        """Seconds from `start` to each mark; the last may just have been issued."""
        marks[-1].synchronize()
        return [seconds_between(start, mark) for mark in marks]

    def copy_seconds(self, start: Event) -> tuple[list[Span], list[Span]]:
        """Start and stop of every copy of this step."""
        return self.swap_out.seconds(start), self.swap_in.seconds(start)

    def communication_seconds(self, start: Event) -> list[Span]:
        """Start and stop of every launch on the communication stream in this step."""
        return self.communication.seconds(start)

    def close(self) -> None:
        """Wait for what has been issued, which nothing can take back, and free the memory."""
        with ExitStack() as last_first:  # each of them, whichever fails
            last_first.callback(self._free)
            self._driver.work_in(None)
            for stream in (self._driver.caller_stream(), *(one.stream for one in self._streams)):
                last_first.callback(stream.synchronize)

    def _free(self) -> None:
        self.arena = self.host = torch.empty(0, dtype=torch.uint8)
        self._pinned.release()
