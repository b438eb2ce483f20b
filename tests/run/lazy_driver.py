"""PyTorch's streams and events, as an accelerator device uses them, on lazy streams.

What the calling thread does itself is a stream of its own, as a GPU's default stream is: the others are not ordered
with it unless events say so. An access of it to memory that another stream uses is a race, like any other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from planner.run.devices.accelerator.accelerator_device import AcceleratorDevice
from planner.run.devices.accelerator.device_memory import DeviceMemory
from planner.run.devices.cpu_rng_states import CpuRngStates
from tests.run.kernel_graph import KernelGraph
from tests.run.lazy_device import Clock, LazyDevice, Record, Stream, merge
from tests.run.lazy_device import Event as Records

CALLER = 5
PIECES = 32  # of work that are done while somebody asks


class Engine(LazyDevice):
    """Lazy streams, and the caller's, whose work is done at once but unknown to the others."""

    def __init__(self, arena_bytes: int, host_bytes: int, schedule: str | int) -> None:
        super().__init__(arena_bytes, host_bytes, schedule)
        self.caller: Clock = {}
        self.recording: object = None  # whatever is called meanwhile is not run

    def touch(self, tensor: Tensor, writes: bool, name: str) -> None:
        """Note an access, unless it is only recorded."""
        if self.recording is None:
            super().touch(tensor, writes, name)

    def _outside(self, name: str) -> tuple[int, int, Clock, str]:
        merge(self.caller, self.clock)
        self.caller[CALLER] = self.caller.get(CALLER, 0) + 1
        return CALLER, self.caller[CALLER], self.caller, f"caller's stream: {name}"

    def learn(self, clock: Clock) -> None:
        """The host knows from now on that all this has happened."""
        merge(self.clock, clock)
        if any(stream.queue for stream in self._streams):
            return  # what was issued before the host knew need not be ordered after it
        self._accesses = [one for one in self._accesses if self.clock.get(one.stream, 0) < one.tick]

    @property
    def streams(self) -> list[Stream]:
        return self._streams


class TorchEvent:
    """An event with the interface of `torch.Event`."""

    def __init__(self, engine: Engine, *, timed: bool) -> None:
        self.records, self._engine = Records(), engine
        self._timed, self._seconds = timed, 0.0

    def stamp(self) -> None:
        self._seconds = time.perf_counter()

    def query(self) -> bool:
        """Whether the latest record is reached; each time that it is not, the streams do a little."""
        if self._engine.recording is not None:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
        record = self.records.latest
        if record is None:
            return True
        for _ in range(PIECES):
            if not record.done:
                self._engine.work()
        if record.done:
            self._engine.learn(record.clock)
        return record.done

    def synchronize(self) -> None:
        while not self.query():
            pass

    def elapsed_time(self, other: TorchEvent) -> float:
        for one in (self, other):
            if not one._timed or one.records.latest is None or not one.records.latest.done:
                raise RuntimeError("both events must be timed, recorded and reached")
        return 1e3 * (other._seconds - self._seconds)


class TorchStream:
    """A stream with the interface of `torch.Stream`."""

    def __init__(self, engine: Engine, stream: Stream) -> None:
        self._engine, self.lazy = engine, stream

    def wait_event(self, event: TorchEvent) -> None:
        self.lazy.wait(event.records)

    def record_event(self, event: TorchEvent) -> None:
        if self._engine.recording is not None:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
        self.lazy.launch(event.stamp, (), {})
        self.lazy.record(event.records)

    def synchronize(self) -> None:
        end = TorchEvent(self._engine, timed=False)
        self.record_event(end)
        end.synchronize()


class CallerStream:
    """The caller's stream, which is never behind."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def record_event(self, event: TorchEvent) -> None:
        merge(self._engine.caller, self._engine.clock)
        event.records.latest = Record(CALLER, dict(self._engine.caller), done=True)
        event.stamp()

    def synchronize(self) -> None:
        self._engine.learn(self._engine.caller)


class Memory:
    """Pinned memory that says when it was released."""

    def __init__(self, memory: Tensor) -> None:
        self.bytes, self.released = memory, False

    def release(self) -> None:
        self.released = True


class LazyDriver:
    """A driver whose streams are lazy."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.memory = Memory(engine.host)
        self.graphs: list[KernelGraph] = []
        self._recording: KernelGraph | None = None
        self._left = list(engine.streams)

    def stream(self) -> TorchStream:
        return TorchStream(self.engine, self._left.pop(0))

    def event(self, *, timed: bool) -> TorchEvent:
        return TorchEvent(self.engine, timed=timed)

    def caller_stream(self) -> CallerStream:
        return CallerStream(self.engine)

    def work_in(self, stream: TorchStream | None) -> None:
        """Every call is told its stream."""

    def call(
        self, stream: TorchStream, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """What only touches memory of the host is done by the caller, at once, as PyTorch does it."""
        if self._recording is not None:
            with self._recording:
                function(*args, **kwargs)
            return
        tensors = [one for one in pytree.tree_leaves((getattr(function, "__self__", None), args, kwargs))
                   if isinstance(one, Tensor)]  # fmt: skip
        if tensors and all(self._is_pinned(one) for one in tensors):
            function(*args, **kwargs)
        else:
            stream.lazy.launch(function, args, kwargs)

    def graph(self, stream: TorchStream, issue: Callable[[], None]) -> Callable[[], None]:
        self._recording = self.engine.recording = graph = KernelGraph()
        try:
            issue()
        finally:
            self._recording = self.engine.recording = None
        self.graphs.append(graph)
        return graph.replay

    def host_waits(self, issue: Callable[[], None]) -> bool:
        """What is issued is done later, so that nobody waits for it."""
        issue()
        return False

    def fill(self, stream: TorchStream, target: Tensor, byte: int) -> None:
        stream.lazy.fill(target, byte)

    def _is_pinned(self, tensor: Tensor) -> bool:
        return 0 <= tensor.data_ptr() - self.memory.bytes.data_ptr() < len(self.memory.bytes)

    def sleep(self, stream: TorchStream, seconds: float) -> None:
        """The schedule delays enough."""

    def arena(self, size: int) -> Tensor:
        return self.engine.arena

    def pinned(self, size: int, check_cancelled: Callable[[], object]) -> Memory:
        return self.memory

    def scratch_bytes(self, call: Callable[[], object]) -> int:
        call()
        return 0

    def allocated_bytes(self) -> int:
        return 0

    def memory(self) -> DeviceMemory:
        return DeviceMemory(self.engine.arena.nbytes, self.engine.arena.nbytes, 0)

    def within(self, budget_bytes: int) -> AbstractContextManager[None]:
        return nullcontext()


class LazyAccelerator(AcceleratorDevice):
    """The accelerator device on lazy streams, with the CPU's kernels.

    Args:
        arena_bytes, host_bytes, schedule: as of `LazyDevice`.
        check_cancelled: as of the accelerator device.
    """

    name = "cpu"
    default_generator = torch.default_generator
    rng_states = CpuRngStates

    def __init__(
        self,
        arena_bytes: int,
        host_bytes: int,
        schedule: str | int = "compute first",
        check_cancelled: Callable[[], object] = lambda: None,
    ) -> None:
        self.engine = Engine(arena_bytes, host_bytes, schedule)
        self.driver = LazyDriver(self.engine)
        super().__init__(self.driver, arena_bytes, host_bytes, check_cancelled)
