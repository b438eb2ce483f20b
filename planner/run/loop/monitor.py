"""Sampling of a run ten times a second, at negligible cost to the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from time import perf_counter

#: Seconds between two samples, which is how often a live chart is drawn. With 0.04 s, steps of 5 ms took 1.4 % longer.
_PERIOD = 0.1
#: At this number of snapshots, every other one is dropped, so that older ones are further apart.
_MOST = 4096

#: Returns the current step, its slot and the bytes in use in the arena; None between steps.
Look = Callable[[], tuple[int, int, int] | None]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The occupancy of the arena at a moment of a run.

    Args:
        seconds: since the run began.
        step: number of the current step, from 0.
        slot: the slot whose op ran or waited; the number of ops while waiting for the last copies.
        bytes: in use in the arena.
    """

    seconds: float
    step: int
    slot: int
    bytes: int


class Monitor:
    """Takes snapshots in a separate thread while steps are made.

    Args:
        began: when the run began, by `time.perf_counter`.
    """

    def __init__(self, began: float) -> None:
        self._began = began
        self._snapshots: list[Snapshot] = []

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The snapshots so far, in order; may be read from any thread."""
        return tuple(self._snapshots)

    @contextmanager
    def watching(self, look: Look, first: int) -> Iterator[None]:
        """Take snapshots during the block.

        Args:
            look: cheap and thread-safe.
            first: the number in the run of the step that `look` numbers 0.
        """
        over = Event()
        thread = Thread(target=self._watch, args=(look, first, over), name="stowage monitor", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _watch(self, look: Look, first: int, over: Event) -> None:
        while not over.wait(_PERIOD):
            seen = look()
            if seen is None:
                continue
            step, slot, size = seen
            if len(self._snapshots) >= _MOST:
                self._snapshots = self._snapshots[::2]
            self._snapshots.append(Snapshot(perf_counter() - self._began, first + step, slot, size))
