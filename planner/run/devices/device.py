"""The device interface of the executor: two slabs of memory and four streams.

A device is one file that implements these protocols. Each stream processes its work in order; work in different streams
is ordered by events alone. The executor issues a copy only after everything that the copy waits for has been issued to
the other streams.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from torch import Tensor

from planner.graph import Graph
from planner.program import BoundCall
from planner.run.devices.accelerator.device_memory import DeviceMemory

#: A point in a stream, recorded anew in every step; opaque to everything but the device that made it.
Event = Any
#: A time stamp; opaque to everything but the device that made it.
Mark = Any


class RuntimeStream(Protocol):
    """Work done in order."""

    def wait(self, event: Event) -> None:
        """Start work issued from now on after the latest record of `event` at the time of this call.

        Later records do not matter. Before any record in this step there is nothing to wait for: like CUDA, the stream
        goes on at once.
        """

    def record(self, event: Event) -> None:
        """Record `event`: whoever waits for it goes on when all work issued so far is done."""

    def copy(self, target: Tensor, source: Tensor) -> None:
        """Copy bytes, both `[n]` of uint8, between the arena and the host slab; start and stop times are recorded."""

    def fill(self, target: Tensor, byte: int) -> None:
        """Set every byte of `target`, `[n]` of uint8."""

    def delay(self, seconds: float) -> None:
        """Do nothing for a while."""


class ComputeStream(RuntimeStream, Protocol):
    """The stream of the kernels."""

    def launch(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Call a function on tensors of the slabs."""


class CommunicationStream(RuntimeStream, Protocol):
    """The stream of collectives beside the kernels."""

    def launch(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Call a function that exchanges tensors of the slabs with other workers; start and stop are recorded.

        If it raises, whoever waits for the stream from then on raises with that error as the cause.
        """


class GraphRecorder(Protocol):
    """Records launches of a device's compute stream as graphs, each of which costs one launch later."""

    def record(self, issue: Callable[[], None]) -> Callable[[], None]:
        """Record what `issue` launches on the compute stream, without doing it; the streams are empty.

        Returns:
            What launches all of it; a launch for the compute stream.

        Raises:
            RuntimeError: something cannot be recorded.
        """

    def host_waits(self, issue: Callable[[], None]) -> bool:
        """Call `issue`, and return whether the host waited for the device meanwhile, which no graph can do."""


class DeviceRngStates(Protocol):
    """The generator's state before each random op of a step, for ops that run in another order than captured."""

    def begin(self) -> None:
        """Compute the states of this step, which starts from the generator's present state."""

    def restore(self, op: int) -> None:
        """Set the generator to its state before an op in captured order; -1 is the end of the step."""


class RuntimeDevice(Protocol):
    """A device with an arena and a host slab of exactly the requested sizes.

    What a step does before and after its streams work (the batch is copied in, outputs are read) is done by the calling
    thread in inference mode, between `synchronize` and `begin`.

    Args:
        arena, host: `[bytes]` of uint8; zero at first.
        compute, swap_out, swap_in, communication: the streams.
    """

    arena: Tensor
    host: Tensor

    @property
    def name(self) -> str:
        """PyTorch's name of its type; it runs graphs that were captured for this name."""

    @property
    def marks_ops(self) -> bool:
        """Whether a mark is cheap enough to be made after every op.

        Otherwise there is one before and one after each segment of ops with nothing between them, and the ops share its
        time as the plan predicts.
        """

    @property
    def is_far(self) -> bool:
        """Whether copying a step's state to the host takes so long that it is better done once, after the last step.

        A step is then not abandoned once it has begun, as it leaves no state to go on from.
        """

    @property
    def graph_recorder(self) -> GraphRecorder | None:
        """What records launches as graphs; None if the device has no such thing."""

    @property
    def default_generator(self) -> torch.Generator:
        """PyTorch's own generator, which random ops of eager PyTorch draw from."""

    @property
    def compute(self) -> ComputeStream:
        """The stream of the kernels."""

    @property
    def swap_out(self) -> RuntimeStream:
        """The stream of copies from the arena to the host slab."""

    @property
    def swap_in(self) -> RuntimeStream:
        """The stream of copies from the host slab to the arena."""

    @property
    def communication(self) -> CommunicationStream:
        """The stream of collectives."""

    def event(self) -> Event:
        """Make an event."""

    def mark(self) -> Mark:
        """Stamp the time in the compute stream."""

    def passed(self, marks: Sequence[Mark]) -> int:
        """How many of a step's marks the compute stream has passed; cheap, thread-safe."""

    def begin(self) -> Mark:
        """Start a step: forgets all records of events and all recorded copies. Returns the time."""

    def generator(self) -> torch.Generator:
        """Make a generator that random ops may draw from."""

    def rng_states(self, graph: Graph, calls: Mapping[int, BoundCall], generator: torch.Generator) -> DeviceRngStates:
        """Make the states of random ops that run in another order than captured.

        Args:
            graph: the graph.
            calls: by random op, its call.
            generator: the generator that they draw from.

        Raises:
            StowageError: how far an op advances the generator cannot be known in advance.
        """

    def differs(self, these: Sequence[Tensor], those: Sequence[Tensor]) -> Callable[[], bool]:
        """Make a check of whether any byte of some tensors differs from others'.

        Args:
            these, those: contiguous, pairwise of equal size; they must not move in memory.
        """

    def scratch_bytes(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
        """Launch a function, and return the most bytes of device memory outside the arena that it held at once."""

    def allocated_bytes(self) -> int:
        """Bytes of device memory that PyTorch has handed out on the device, arena included; 0 where it does not count.

        Cheap, thread-safe.
        """

    def memory(self) -> DeviceMemory | None:
        """What is taken of the device's memory by everyone; None where it is the host's. Cheap, thread-safe."""

    def within(self, budget_bytes: int) -> AbstractContextManager[None]:
        """Within the block, let PyTorch refuse to take more device memory than a budget, the arena included.

        Where a CPU stands in for a device, there is no such limit.
        """

    def copied(self) -> tuple[int, int]:
        """The numbers of swap-outs of this step that are done and of swap-ins that have begun; cheap, thread-safe."""

    def synchronize(self) -> None:
        """Return when all streams are empty; raises if one of them failed."""

    def seconds(self, start: Mark, marks: list[Mark]) -> list[float]:
        """Seconds from `start` to each mark."""

    def copy_seconds(self, start: Mark) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        """Start and stop of every copy of this step in issue order: swap-outs, swap-ins."""

    def communication_seconds(self, start: Mark) -> list[tuple[float, float]]:
        """Start and stop of every launch on the communication stream in this step, in issue order."""

    def close(self) -> None:
        """End the streams, whatever they are doing, and free the memory."""
