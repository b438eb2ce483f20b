"""Interrupting a thread's work from outside: deferred during a block, or delivered wherever its Python code is."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread, current_thread, get_ident, main_thread
from typing import TypeVar

from planner.run.stop.stop_request import RunCancelled
from planner.shutdown import raise_in

T = TypeVar("T")

_LOOK_SECONDS = 0.05
#: Iterations of a loop after which Python has raised a pending asynchronous exception.
_MOMENTS = 1000


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer Ctrl-C until the end of the block."""
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield  # other threads are never interrupted, and a handler not set from Python cannot be restored
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed:
            signal.raise_signal(signal.SIGINT)


def interruptibly(work: Callable[[], T], check_cancelled: Callable[[], object]) -> T:
    """Call a function and return its result, unless the run is cancelled meanwhile, which interrupts its Python code.

    A running kernel ends first. As after Ctrl-C, what the function was changing is left half done.

    Args:
        work: may be user code.
        check_cancelled: called periodically in another thread; raises RunCancelled to stop.

    Raises:
        RunCancelled: the run was cancelled.
    """
    check_cancelled()
    thread, lock, ended = get_ident(), Lock(), Event()
    raised = False

    class Left(RunCancelled):
        """Raised from outside, and never by the work itself."""

    def watch() -> None:
        nonlocal raised
        while not ended.wait(_LOOK_SECONDS):
            try:
                check_cancelled()
            except RunCancelled:
                with lock:
                    if not ended.is_set():
                        raised = raise_in(thread, Left)
                        if not raised:
                            continue  # the thread is compiling
                return  # raised once, so that the cleanup below is interrupted at most once

    def end() -> None:
        """Stop raising, and consume a pending exception, because Python cannot withdraw it safely.

        (It would forget the error, but not that there is one, and a debugger in the same process would hang forever.)
        """
        with lock:
            ended.set()
        if raised:
            raise_in(thread, Left)  # replaces the one that is still pending, or was caught by the work
            for _ in range(_MOMENTS):
                pass

    Thread(target=watch, name="stowage stop", daemon=True).start()
    try:
        result = work()
    except Left:
        ended.set()
        raise RunCancelled from None
    except BaseException:
        with suppress(Left):
            end()
        raise
    with suppress(Left):
        end()
    return result
