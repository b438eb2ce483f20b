"""Cancellation: a token that says whether running work is to stop, and interrupts of the code in between its checks."""

from __future__ import annotations

import signal
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import inf
from threading import Event, Lock, Thread, Timer, current_thread, get_ident, main_thread
from time import perf_counter
from types import FrameType
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from planner.shutdown import raise_in

T = TypeVar("T")
Flag = NDArray[np.int64]

#: Seconds between two looks at a token while other code runs.
_LOOK_SECONDS = 0.05
#: Seconds until a deferred Ctrl-C comes again.
_AGAIN_SECONDS = 0.001
#: Iterations of a loop after which Python has raised a pending asynchronous exception.
_MOMENTS = 1000


class Cancelled(BaseException):
    """The work was cancelled; its caller's state is unchanged and it may be started again.

    A BaseException, so that nothing between the check and whoever began the work handles it as an error: not a model,
    whose code runs in between, nor a handler that turns errors into sentences.
    """


def _never() -> bool:
    return False


class CancelToken:
    """Tells running work whether to stop; cancelled in any thread.

    Args:
        asked: called by `check`; the work stops once it returns True.

    Attributes:
        flag: `[1]`, 0 until the work is to stop. Long-running kernels poll it and return early; their outputs are then
            incomplete, so `check` follows every call of such a kernel.
    """

    def __init__(self, asked: Callable[[], bool] = _never) -> None:
        self.flag: Flag = np.zeros(1, np.int64)
        self._asked, self._set, self._overdue = asked, Event(), inf

    @classmethod
    def after(cls, seconds: float) -> CancelToken:
        """A token that is cancelled that many seconds from now."""
        over = perf_counter() + seconds
        return cls(lambda: perf_counter() > over)

    def within_step(self) -> CancelToken:
        """A token for work inside a step: cancelled when this one is and its patience has run out."""
        return CancelToken(lambda: perf_counter() > self._overdue)

    @property
    def requested(self) -> bool:
        """Whether to stop."""
        return self._set.is_set() or self._asked()

    def cancel(self, patience: float = 0.0) -> None:
        """Stop before the next step, or within one that takes longer than `patience` seconds from now."""
        self._overdue = min(self._overdue, perf_counter() + patience)
        self._stop()

    def clear(self) -> None:
        """Withdraw the request."""
        self._overdue = inf
        self._set.clear()
        self.flag[0] = 0

    def check(self) -> None:
        """Raise if cancellation was requested.

        Raises:
            Cancelled: it was requested.
        """
        if self.requested:
            self._stop()  # kernels in other threads stop too
            raise Cancelled

    def wait(self, seconds: float) -> bool:
        """Wait for `cancel`, at most that many seconds; returns whether it was called."""
        return self._set.wait(seconds)

    def _stop(self) -> None:
        self._set.set()
        self.flag[0] = 1


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


@contextmanager
def interrupted_after_kernels() -> Iterator[None]:
    """Defer a Ctrl-C that comes while a kernel hands over its result until it has.

    numba makes a named tuple by calling Python, and takes an exception from there for an object: the process crashes.
    """
    before = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not callable(before):
        yield  # other threads are never interrupted, and without a handler in Python nothing is raised
        return

    def press(number: int, frame: FrameType | None) -> None:
        if _hands_over(frame):
            again = Timer(_AGAIN_SECONDS, interrupt_main)
            again.daemon = True
            again.start()
        else:
            before(number, frame)

    signal.signal(signal.SIGINT, press)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is press:
            signal.signal(signal.SIGINT, before)


def _hands_over(frame: FrameType | None) -> bool:
    """Whether code runs that numba calls for a kernel's result."""
    while frame is not None and frame.f_globals.get("__name__") != "numba.core.serialize":
        frame = frame.f_back
    return frame is not None


def behind_system_error(error: BaseException) -> BaseException | None:
    """The error itself, or what numba made a SystemError of because it came while a kernel was loaded or ended."""
    cause: BaseException | None = error
    while isinstance(cause, SystemError):
        cause = cause.__cause__
    return cause


def interruptibly(work: Callable[[], T], stop: CancelToken) -> T:
    """Call a function and return its result, unless it is cancelled meanwhile, which interrupts its Python code.

    A running kernel ends first. As after Ctrl-C, what the function was changing is left half done.

    Args:
        work: may be user code, which checks no token.
        stop: checked periodically in another thread.

    Raises:
        Cancelled: cancellation was requested.
    """
    stop.check()
    thread, lock, ended = get_ident(), Lock(), Event()
    raised = under_way = False

    class Left(Cancelled):
        """Raised from outside, and never by the work itself."""

        def __del__(self) -> None:
            """Note that nobody handles it any more: a finalizer, whose errors Python drops, or the work caught it."""
            nonlocal under_way
            under_way = False

    def watch() -> None:
        nonlocal raised, under_way
        while not ended.wait(_LOOK_SECONDS):
            # again only where it was lost, so that the cleanup is interrupted at most once
            if stop.requested and not under_way:
                with lock:
                    if not ended.is_set():
                        under_way = True
                        if raise_in(thread, Left):
                            raised = True
                        else:
                            under_way = False  # the thread is compiling

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

    watcher = Thread(target=watch, name="stowage stop", daemon=True)
    watcher.start()
    try:
        try:
            result = work()
        except BaseException as error:
            if isinstance(behind_system_error(error), Left):
                ended.set()
                watcher.join()
                raise Cancelled from None
            with suppress(Left):
                end()
            watcher.join()
            raise
        with suppress(Left):
            end()
        watcher.join()
        return result
    finally:
        ended.set()  # also where it was raised between the work and its end, and leaves by itself
