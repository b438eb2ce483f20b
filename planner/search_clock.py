"""The clock that limits searches; it stops while kernels are compiled, which happens once on a computer."""

from __future__ import annotations

from threading import Lock
from time import perf_counter
from typing import Any

from numba.core import event


class _CompileWatch(event.Listener):
    """Told when a kernel is compiled, not when one is loaded from disk; one thread compiles at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._depth, self._began, self._compiling = 0, 0.0, 0.0

    def on_start(self, event: Any) -> None:
        with self._lock:
            if self._depth == 0:
                self._began = perf_counter()
            self._depth += 1

    def on_end(self, event: Any) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._compiling += perf_counter() - self._began

    def seconds(self) -> float:
        with self._lock:
            return (self._began if self._depth else perf_counter()) - self._compiling


_clock = _CompileWatch()
event.register("numba:compile", _clock)  # type: ignore[no-untyped-call]


def search_seconds() -> float:
    """Seconds on the clock; only differences mean anything."""
    return _clock.seconds()
