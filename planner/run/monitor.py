"""A look at a run ten times a second, which costs the run next to nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from time import perf_counter

#: Seconds between two looks: as often as a live chart is drawn. With 0.04 s, steps of 5 ms took 1.4 % longer.
_PERIOD = 0.1
#: When there are so many snapshots, every other one goes: the older they are, the further apart.
_MOST = 4096

#: The step that is being made, the slot in it and the bytes in the arena; None between steps.
Look = Callable[[], tuple[int, int, int] | None]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How full the arena was at a moment of a run.

    Args:
        seconds: since the run began.
        step: the step that was being made, from 0.
        slot: whose op ran or was waited for; the number of ops while the last copies were.
        bytes: that were in use in the arena.
    """

    seconds: float
    step: int
    slot: int
    bytes: int


class Monitor:
    """Takes snapshots in a thread of its own while steps are made.

    Args:
        began: when the run began, by `time.perf_counter`.
    """

    def __init__(self, began: float) -> None:
        self._began = began
        self._snapshots: list[Snapshot] = []

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """Those taken so far, in order, from any thread."""
        return tuple(self._snapshots)

    @contextmanager
    def watching(self, look: Look, first: int) -> Iterator[None]:
        """Take snapshots during the block.

        Args:
            look: cheap, and good to be called from another thread.
            first: the number of the run's step that `look` calls 0.
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
