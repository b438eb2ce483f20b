"""What ends a thread's work from outside, kept waiting or let in wherever Python is."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread, current_thread, get_ident, main_thread
from typing import TypeVar

from planner.ending import raise_in
from planner.run.stopping import Cancelled

T = TypeVar("T")

_LOOK_SECONDS = 0.05
#: Of a loop, after which Python has raised what another thread asked for.
_MOMENTS = 1000


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
    raised = False

    class Left(Cancelled):
        """What is raised from outside, and by nothing in the work itself."""

    def watch() -> None:
        nonlocal raised
        while not ended.wait(_LOOK_SECONDS):
            try:
                heed()
            except Cancelled:
                with lock:
                    if not ended.is_set():
                        raised = raise_in(thread, Left)
                        if not raised:
                            continue  # it compiles
                return  # it is raised once, so what ends the work below is disturbed once at most

    def end() -> None:
        """Raise nothing any more, nor leave anything to be raised: Python cannot take that back without harm.

        (It forgets the error, but not that there is one, and a debugger in the same process then hangs for ever.)
        """
        with lock:
            ended.set()
        if raised:
            raise_in(thread, Left)  # in the place of the one that did not come yet, or was caught by the work
            for _ in range(_MOMENTS):
                pass

    Thread(target=watch, name="stowage stop", daemon=True).start()
    try:
        result = work()
    except Left:
        ended.set()
        raise Cancelled from None
    except BaseException:
        with suppress(Left):
            end()
        raise
    with suppress(Left):
        end()
    return result
