"""Ctrl-C while a step is traced: raised in the user's code or between two ops, never in a callback of PyTorch's C++."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

_OURS = ("torch", __name__.partition(".")[0])


@contextmanager
def interrupted_safely() -> Iterator[Callable[[], None]]:
    """Defer a Ctrl-C that comes in PyTorch's Python code or in ours until an exception may be raised.

    C++ calls some of that code where no exception may pass, and aborts the process. In the user's code, which may wait
    for input or loop, a Ctrl-C is raised at once, and a deferred one is as soon as that code goes on; a second Ctrl-C
    is raised wherever it comes.

    Yields:
        A function to call where an exception may be raised: it raises a deferred Ctrl-C. So does the end of the block.
    """
    before = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not callable(before):
        yield lambda: None  # other threads are never interrupted, and without a handler in Python nothing is raised
        return
    deferred = False

    def press(_: int, frame: FrameType | None) -> None:
        nonlocal deferred
        if deferred or _is_users(frame):
            give(frame)
            return
        deferred = True
        if sys.getprofile() is None:
            sys.setprofile(look)

    def look(frame: FrameType, *_: object) -> None:
        if deferred and _is_users(frame):
            give(frame)

    def give(frame: FrameType | None) -> None:
        nonlocal deferred
        deferred = False
        if sys.getprofile() is look:
            sys.setprofile(None)
        before(signal.SIGINT, frame)

    def check() -> None:
        if deferred:
            give(sys._getframe())

    signal.signal(signal.SIGINT, press)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)
        check()


def _is_users(frame: FrameType | None) -> bool:
    """Whether code runs for the user's: it is theirs, or Python's own or generated and called by theirs."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        package = module.partition(".")[0]
        if package in _OURS:
            return False
        if package not in sys.stdlib_module_names and module in sys.modules:
            return True
        frame = frame.f_back
    return True
