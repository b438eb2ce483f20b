"""An imitation of a link between a device and host memory, with a given bandwidth."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from planner.machine import Link

_CHUNK_SECONDS = 5e-4  # duration of a chunk on the link, after which a copy notices traffic in the other direction
_LEAST_CHUNK = 1 << 16
_MOST_CHUNK = 1 << 22
_LONGEST_SLEEP = 0.1


class PacedLink:
    """Copies for two directions, each at the pace of a link; each direction is used by one thread.

    Args:
        link: what to imitate; None copies as fast as memory allows.
        closed: returns whether copies may be abandoned.
    """

    def __init__(self, link: Link | None, closed: Callable[[], bool] = lambda: False) -> None:
        self._link, self._closed = link, closed
        self._busy = [False, False]

    def copy(self, target: NDArray[np.uint8], source: NDArray[np.uint8], direction: int) -> None:
        """Copy `[n]` bytes; NumPy releases the interpreter's lock and stays on this thread's core."""
        if self._link is None:
            np.copyto(target, source)
            return
        self._busy[direction] = True
        try:
            self._copy_at_pace(target, source, 1 - direction, self._link)
        finally:
            self._busy[direction] = False

    def _copy_at_pace(self, target: NDArray[np.uint8], source: NDArray[np.uint8], other: int, link: Link) -> None:
        chunk = min(max(int(link.bandwidth * _CHUNK_SECONDS), _LEAST_CHUNK), _MOST_CHUNK)
        shared = min(link.bandwidth, link.duplex_bandwidth / 2)
        due = time.perf_counter() + link.latency
        for start in range(0, len(source), chunk):
            part = slice(start, min(start + chunk, len(source)))
            np.copyto(target[part], source[part])
            due += (part.stop - part.start) / (shared if self._busy[other] else link.bandwidth)
            while (early := due - time.perf_counter()) > 0 and not self._closed():
                time.sleep(min(early, _LONGEST_SLEEP))
            if self._closed():
                return
