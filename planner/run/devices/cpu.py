"""The CPU as a device: an arena and a host slab in memory, and a thread for each direction of copies and for exchanges.

An event is what it is for CUDA: a wait is for its latest record at the time of the call, and for nothing before any.

Kernels run on the thread that calls them, with PyTorch's own threads; the copies take one core each while they run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from planner.machine import Link
from planner.program import backend_of
from planner.run.devices.cpu_rng_states import CpuRngStates
from planner.run.devices.cpu_streams import (
    CpuCommunicationStream,
    CpuComputeStream,
    CpuCopyStream,
    CpuEvent,
    Span,
    StreamRecords,
)
from planner.run.devices.link import PacedLink
from planner.run.devices.memcmp import areas_differ

#: How long closing waits for a collective; one whose peers do not come keeps its memory until they are gone.
_PEERS_SECONDS = 0.5


class CpuDevice:
    """Device memory of exactly `arena_bytes`, host memory of exactly `host_bytes`, and four streams.

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
    is_far = False
    graph_recorder = None
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
        slab = backend_of(self.name).slab
        self.arena = slab(arena_bytes, check_cancelled)
        self.host = slab(host_bytes, check_cancelled)
        self._events: list[CpuEvent] = []
        self._records = StreamRecords(check_cancelled)
        paced = PacedLink(link, lambda: self._records.failure is not None)
        self.compute = CpuComputeStream(self._records)
        self.swap_out = CpuCopyStream(self._records, paced, 0)
        self.swap_in = CpuCopyStream(self._records, paced, 1)
        self.communication = CpuCommunicationStream(self._records)
        self.mark = time.perf_counter

    def event(self) -> CpuEvent:
        """Make an event."""
        self._events.append(CpuEvent())
        return self._events[-1]

    def begin(self) -> float:
        """Start a step."""
        for event in self._events:
            event.latest = None
        self._records.clear()
        self.swap_out.spans.clear()
        self.swap_in.spans.clear()
        self.swap_in.begun = 0
        self.communication.spans.clear()
        return time.perf_counter()

    def scratch_bytes(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
        """Call a function; returns the most bytes that it held at once in memory it allocated."""
        return backend_of(self.name).scratch_bytes(lambda: function(*args, **kwargs))

    def allocated_bytes(self) -> int:
        """0: PyTorch does not count what it hands out of the host's memory."""
        return 0

    def memory(self) -> None:
        """None: its memory is the host's."""

    def within(self, budget_bytes: int) -> AbstractContextManager[None]:
        """No limit: the host's memory is for all programs."""
        return nullcontext()

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
        """Return when all streams are empty.

        Raises:
            RuntimeError: a copy or a collective failed; the original error is its cause.
        """
        for stream in (self.swap_out, self.swap_in, *([self.communication] if self.communication.started else [])):
            empty = CpuEvent()
            stream.record(empty)
            self.compute.wait(empty)

    def seconds(self, start: float, marks: list[float]) -> list[float]:
        """Seconds from `start` to each mark."""
        return [mark - start for mark in marks]

    def copy_seconds(self, start: float) -> tuple[list[Span], list[Span]]:
        """Start and stop of every copy of this step."""
        outs, ins = ([(a - start, b - start) for a, b in s.spans] for s in (self.swap_out, self.swap_in))
        return outs, ins

    def communication_seconds(self, start: float) -> list[Span]:
        """Start and stop of every launch on the communication stream in this step."""
        return [(a - start, b - start) for a, b in self.communication.spans]

    def close(self) -> None:
        """End the threads, whatever they wait for, and free the memory."""
        self._records.fail(None)
        self.swap_out.join()
        self.swap_in.join()
        self.communication.join(_PEERS_SECONDS)
        self.arena = self.host = torch.empty(0, dtype=torch.uint8)
