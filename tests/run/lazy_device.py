"""A device whose streams do nothing until the host waits for them, and then in an order that is chosen.

It is a second implementation of the protocol in `planner/run/devices/device.py`, and a strict one: events mean what
CUDA's mean, and every byte of the slabs that a call reads or writes is seen while it runs. Two accesses to the same
bytes, at least one of them a write, must be ordered by the streams and events alone (vector clocks); if they are not,
that is a race, whether the bits come out right or not.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from planner.run.devices.cpu_rng_states import CpuRngStates
from planner.run.devices.memcmp import areas_differ

HOST, COMPUTE, SWAP_OUT, SWAP_IN, COMMUNICATION = range(5)
#: In which order streams that could go on do so; anything else is a seed of random choices.
SCHEDULES: Mapping[str, tuple[int, ...]] = {
    "compute first": (COMPUTE, SWAP_OUT, SWAP_IN, COMMUNICATION),
    "copies first": (COMMUNICATION, SWAP_IN, SWAP_OUT, COMPUTE),
    "swap-ins last": (SWAP_OUT, COMPUTE, COMMUNICATION, SWAP_IN),
}

#: By stream, how much of it has happened before.
Clock = dict[int, int]


def merge(clock: Clock, other: Clock) -> None:
    for stream, tick in other.items():
        clock[stream] = max(clock.get(stream, 0), tick)


@dataclass(eq=False)
class Record:
    """One recording of an event by a stream: what it comes after, and whether the stream has come that far."""

    stream: int
    clock: Clock
    done: bool = False


@dataclass(eq=False)
class Event:
    latest: Record | None = None


class Work(NamedTuple):
    """What a stream was given: something to run, or a record to wait for."""

    run: Callable[[], object] | None
    clock: Clock
    tick: int
    name: str
    awaited: Record | None = None


class Access(NamedTuple):
    """Bytes `[begin, end)` of a slab read or written at a tick of a stream."""

    begin: int
    end: int
    writes: bool
    stream: int
    tick: int
    name: str


@dataclass(eq=False)
class Stream:
    """A queue, and what is known to happen before whatever is put into it next."""

    device: LazyDevice
    number: int
    queue: deque[Work] = field(default_factory=deque)
    clock: Clock = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        """Whether it has something to do and need not wait."""
        awaited = self.queue[0].awaited if self.queue else None
        return bool(self.queue) and (awaited is None or awaited.done)

    def wait(self, event: Event) -> None:
        """Wait for the record that is the latest now, as `cudaStreamWaitEvent` does; without any, do nothing."""
        device = self.device
        device.waits += 1
        if device.waits == device.dropped_wait:
            return
        if event.latest is None:
            device.void_waits += 1
            return
        if COMMUNICATION in (self.number, event.latest.stream):
            device.communication_waits.append(device.waits)
        merge(self.clock, event.latest.clock)
        self.queue.append(Work(None, {}, 0, "wait", event.latest))

    def record(self, event: Event) -> None:
        event.latest = record = Record(self.number, dict(self.clock))
        self._put("record", lambda: setattr(record, "done", True))

    def copy(self, target: Tensor, source: Tensor) -> None:
        self._put("copy", lambda: self._copy(target, source))

    def fill(self, target: Tensor, byte: int) -> None:
        self._put("fill", lambda: target.fill_(byte))

    def launch(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._put(getattr(function, "__name__", str(function)), lambda: self._launch(function, args, kwargs))

    def delay(self, seconds: float) -> None:
        """The schedule delays enough."""

    def _put(self, name: str, run: Callable[[], object]) -> None:
        merge(self.clock, self.device.clock)
        tick = self.clock[self.number] = self.clock.get(self.number, 0) + 1
        self.queue.append(Work(run, dict(self.clock), tick, name))

    def _launch(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        start = time.perf_counter()
        self.device.launched.append(self.number)
        function(*args, **kwargs)
        if self.number == COMMUNICATION:
            self.device.spans[self.number].append((start, time.perf_counter()))

    def _copy(self, target: Tensor, source: Tensor) -> None:
        start = time.perf_counter()
        self.device.begun[self.number] += 1
        target.copy_(source)
        self.device.spans[self.number].append((start, time.perf_counter()))


class LazyDevice:
    """A device with slabs of these sizes.

    Args:
        arena_bytes, host_bytes: sizes.
        schedule: a name in `SCHEDULES`, or a seed.
        dropped_wait: of the waits given since this was made, counted from 1, the one that is not given; 0 for none.
        marks_ops: as in the protocol.
        beside: other memory whose accesses must be ordered too.

    Attributes:
        races: what was not ordered, in words.
        waits, void_waits: how many waits were given, and how many of these for an event that nobody had recorded.
        communication_waits: the numbers of the waits of the communication stream, and of those for it.
        launched: by call of this step, the stream that made it, in the order in which they were made.
    """

    name = "cpu"
    default_generator = torch.default_generator
    rng_states = CpuRngStates
    differs = staticmethod(areas_differ)
    graph_recorder = None

    def __init__(
        self,
        arena_bytes: int,
        host_bytes: int,
        schedule: str | int = "compute first",
        dropped_wait: int = 0,
        *,
        marks_ops: bool = True,
        beside: Sequence[Tensor] = (),
    ) -> None:
        self.marks_ops = marks_ops
        # aligned as PyTorch's own memory is: kernels choose their path by it
        self._memory = [torch.zeros(size + 64, dtype=torch.uint8) for size in (arena_bytes, host_bytes)]
        self.arena, self.host = (
            memory[(first := -memory.data_ptr() % 64) : first + size]
            for memory, size in zip(self._memory, (arena_bytes, host_bytes), strict=True)
        )
        self._slabs = [(slab.data_ptr(), slab.data_ptr() + len(slab)) for slab in (self.arena, self.host, *beside)]
        self._rank = SCHEDULES.get(schedule) if isinstance(schedule, str) else None
        self._random = Random(0 if isinstance(schedule, str) else schedule)
        self.clock: Clock = {HOST: 1}
        self.races: list[str] = []
        self.waits, self.void_waits, self.dropped_wait = 0, 0, dropped_wait
        self.communication_waits: list[int] = []
        self.launched: list[int] = []
        self._running: tuple[int, Work] | None = None
        self._accesses: list[Access] = []
        self._events: list[Event] = []
        self._streams = [Stream(self, number) for number in (COMPUTE, SWAP_OUT, SWAP_IN, COMMUNICATION)]
        self.compute, self.swap_out, self.swap_in, self.communication = self._streams
        self.begun = {stream.number: 0 for stream in self._streams}
        self.spans: dict[int, list[tuple[float, float]]] = {stream.number: [] for stream in self._streams}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """See what this thread's calls read and write, also those of the host between the steps."""
        with _Watcher(self.touch):
            yield

    def touch(self, tensor: Tensor, writes: bool, name: str) -> None:
        """Note an access, and hold it against those before it that it is not ordered after."""
        begin = tensor.data_ptr()
        if not any(first <= begin < last for first, last in self._slabs):
            return
        reach = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
        end = begin + reach * tensor.element_size()
        if self._running is None:
            stream, tick, clock, who = self._outside(name)
        else:
            stream, work = self._running
            tick, clock, who = work.tick, work.clock, f"stream {stream}: {name}"
        for other in self._accesses:
            if (
                (writes or other.writes)
                and other.begin < end
                and begin < other.end
                and (other.stream, other.tick) != (stream, tick)
                and clock.get(other.stream, 0) < other.tick
            ):
                self.races.append(f"{who} is not ordered after {other.name}")
        if writes:  # what is ordered after this access is ordered after what this one was ordered after
            self._accesses = [one for one in self._accesses if not (begin <= one.begin and one.end <= end)]
        self._accesses.append(Access(begin, end, writes, stream, tick, who))

    def _outside(self, name: str) -> tuple[int, int, Clock, str]:
        """The stream of an access between the steps, its tick, what it comes after, and its name."""
        self.clock[HOST] += 1
        return HOST, self.clock[HOST], self.clock, f"host: {name}"

    def event(self) -> Event:
        self._events.append(Event())
        return self._events[-1]

    def mark(self) -> float:
        return time.perf_counter()

    def begin(self) -> float:
        for event in self._events:
            event.latest = None
        for spans in self.spans.values():
            spans.clear()
        self.begun = dict.fromkeys(self.begun, 0)
        self.communication_waits.clear()
        self.launched.clear()
        return time.perf_counter()

    def scratch_bytes(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
        """Launch; what it takes besides is not known before it runs."""
        self.compute.launch(function, args, kwargs)
        return 0

    def allocated_bytes(self) -> int:
        return 0

    def memory(self) -> None:
        """Its memory is the host's."""

    def within(self, budget_bytes: int) -> AbstractContextManager[None]:
        return nullcontext()

    def copied(self) -> tuple[int, int]:
        return len(self.spans[SWAP_OUT]), self.begun[SWAP_IN]

    def synchronize(self) -> None:
        """Let the streams work, one piece after another, in the order of the schedule."""
        while any(stream.queue for stream in self._streams):
            self.work()
        for stream in self._streams:
            merge(self.clock, stream.clock)
        self._accesses.clear()  # whatever comes next is ordered after all of them

    def work(self) -> None:
        """Let one stream do one piece of work."""
        free = [stream for stream in self._streams if stream.ready]
        if not free:
            raise RuntimeError("every stream waits for another")
        rank = self._rank
        stream = self._random.choice(free) if rank is None else min(free, key=lambda one: rank.index(one.number))
        work = stream.queue.popleft()
        self._running = stream.number, work
        try:
            if work.run is not None:
                work.run()
        finally:
            self._running = None

    def passed(self, marks: Sequence[float]) -> int:
        return len(marks)

    def generator(self) -> torch.Generator:
        return torch.Generator()

    def seconds(self, start: float, marks: list[float]) -> list[float]:
        return [mark - start for mark in marks]

    def copy_seconds(self, start: float) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        outs, ins = ([(a - start, b - start) for a, b in self.spans[one]] for one in (SWAP_OUT, SWAP_IN))
        return outs, ins

    def communication_seconds(self, start: float) -> list[tuple[float, float]]:
        return [(a - start, b - start) for a, b in self.spans[COMMUNICATION]]

    def close(self) -> None:
        self._memory.clear()


class _Watcher(TorchDispatchMode):
    def __init__(self, touch: Callable[[Tensor, bool, str], None]) -> None:
        super().__init__()
        self._touch = touch

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if not func.is_view and torch.Tag.inplace_view not in func.tags:
            named = func._schema.arguments
            given = [*zip(named, args, strict=False), *((one, kwargs[one.name]) for one in named if one.name in kwargs)]
            for argument, value in given:
                writes = argument.alias_info is not None and argument.alias_info.is_write
                for tensor in pytree.tree_leaves(value):
                    if isinstance(tensor, Tensor) and tensor.numel():
                        self._touch(tensor, writes, str(func))
        return func(*args, **kwargs)
