"""Ctrl-C, kept waiting while something must not be left half done."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C take effect only when the block is done."""
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield  # no other thread is ever interrupted, and a handler that is not Python's cannot be put back
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed:
            signal.raise_signal(signal.SIGINT)
