"""What ends a thread's work from outside, kept waiting or let in wherever Python is."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread, current_thread, get_ident, main_thread
from typing import TypeVar

from planner.ending import raise_in, raise_nothing_in
from planner.run.stopping import Cancelled

T = TypeVar("T")

_LOOK_SECONDS = 0.05


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


def interruptibly(work: Callable[[], T], heed: Callable[[], object]) -> T:
    """What a function returns, unless this run is asked to stop meanwhile: then it is left wherever Python is in it.

    A kernel that is at work ends first. As after Ctrl-C, what the function was changing is left half done.

    Args:
        work: may be anybody's code.
        heed: asked all the time, in another thread; it raises Cancelled once it is time to stop.

    Raises:
        Cancelled: it was.
    """
    heed()
    thread, lock, ended = get_ident(), Lock(), Event()

    def watch() -> None:
        while not ended.wait(_LOOK_SECONDS):
            try:
                heed()
            except Cancelled:
                with lock:
                    if not ended.is_set() and not raise_in(thread, Cancelled):
                        continue  # it compiles
                return  # it is raised once, so what ends the work below is disturbed once at most

    def end() -> None:
        with lock:
            ended.set()
        raise_nothing_in(thread)

    Thread(target=watch, name="stowage stop", daemon=True).start()
    try:
        try:
            return work()
        finally:
            end()
    except Cancelled:
        end()
        raise
