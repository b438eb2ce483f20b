"""Sampling of a run ten times a second, at negligible cost to the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from time import perf_counter

from planner.run.devices.accelerator.device_memory import DeviceMemory

#: Seconds between two samples, which is how often a live chart is drawn. With 0.04 s, steps of 5 ms took 1.4 % longer.
_PERIOD = 0.1
#: At this number of snapshots, every other one is dropped, so that older ones are further apart.
_MOST = 4096

#: Returns the current step, its slot and the bytes in use in the arena; None between steps.
Look = Callable[[], tuple[int, int, int] | None]
#: Returns what is taken of the device's memory by everyone; None where it is the host's.
Memory = Callable[[], DeviceMemory | None]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The occupancy of the arena at a moment of a run.

    Args:
        seconds: since the run began.
        step: number of the current step, from 0.
        slot: the slot whose op ran or waited; the number of ops while waiting for the last copies.
        bytes: in use in the arena.
        gpu_bytes: in use on the whole GPU, by all programs; 0 on the CPU.
        allocator_bytes: what PyTorch's allocator holds of the GPU for this process; 0 on the CPU.
    """

    seconds: float
    step: int
    slot: int
    bytes: int
    gpu_bytes: int = 0
    allocator_bytes: int = 0


class Monitor:
    """Takes snapshots in a separate thread while steps are made.

    Args:
        began: when the run began, by `time.perf_counter`.

    Attributes:
        most: what was taken of the device's memory by everyone when that was most, in snapshots and after the last
            step; None where it is the host's.
    """

    def __init__(self, began: float) -> None:
        self._began = began
        self._snapshots: list[Snapshot] = []
        self.most: DeviceMemory | None = None

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The snapshots so far, in order; may be read from any thread."""
        return tuple(self._snapshots)

    @contextmanager
    def watching(self, look: Look, first: int, memory: Memory = lambda: None) -> Iterator[None]:
        """Take snapshots during the block.

        Args:
            look, memory: cheap and thread-safe.
            first: the number in the run of the step that `look` numbers 0.
        """
        over = Event()
        thread = Thread(target=self._watch, args=(look, first, memory, over), name="stowage monitor", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self._note(memory())  # steps may be too short for a snapshot

    def _note(self, taken: DeviceMemory | None) -> None:
        if taken is not None and (self.most is None or taken.in_use > self.most.in_use):
            self.most = taken

    def _watch(self, look: Look, first: int, memory: Memory, over: Event) -> None:
        while not over.wait(_PERIOD):
            seen = look()
            if seen is None:
                continue
            step, slot, size = seen
            if len(self._snapshots) >= _MOST:
                self._snapshots = self._snapshots[::2]
            taken = memory()
            self._note(taken)
            everyone, held = (0, 0) if taken is None else (taken.in_use, taken.held)
            self._snapshots.append(Snapshot(perf_counter() - self._began, first + step, slot, size, everyone, held))
