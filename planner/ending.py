"""The program's end: threads are asked to stop and waited for; PyTorch aborts where one of them is in a kernel."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import thread as pools  # its own end is registered when it is imported, and comes after ours
from time import perf_counter, sleep
from typing import Any
from weakref import ref

#: What the names of all our threads begin with, and those of the threads that wait for a pool's or are a pool's.
_OURS, _WITH_POOLS = "stowage", "stowage-search"
#: So long threads may take to end by themselves; then they are interrupted, and at last left alone.
_GENTLE_SECONDS, _SECONDS = 0.6, 1.8
_LOOK_SECONDS, _AGAIN_SECONDS = 0.01, 0.4
#: In the path of every file of numba's.
_COMPILER = f"{os.sep}numba{os.sep}"

#: Objects and methods of theirs. Those that are gone are found when there is another: a weak reference has no callback
#: here, and a WeakMethod always has, since a KeyboardInterrupt that is raised in one is lost.
_Asks = set[tuple[ref[Any], Callable[[Any], object]]]
_asks: _Asks = set()
_early_asks: _Asks = set()


def at_end(ask: Callable[[], object], *, early: bool = False) -> None:
    """Have a method called at the program's end, which asks threads to stop; those named `stowage…` are waited for.

    Args:
        ask: of an object that is not kept alive; it returns at once, and may be called twice.
        early: as soon as the main thread has ended. Only what works with a pool of threads must stop so early, since
            Python waits for pools then; other things may go on as long as any thread of the program does.
    """
    asks = _early_asks if early else _asks
    asks.difference_update([known for known in tuple(asks) if known[0]() is None])
    method: Any = ask
    asks.add((ref(method.__self__), method.__func__))


def _end(asks: _Asks, names: str) -> None:
    for known, ask in list(asks):
        owner = known()
        if owner is not None:
            ask(owner)
    began = interrupted = perf_counter()
    while (left := _threads(names)) and (now := perf_counter()) < began + _SECONDS:
        if now > began + _GENTLE_SECONDS and now > interrupted + _AGAIN_SECONDS:
            interrupted = now
            _interrupt(left)
        sleep(_LOOK_SECONDS)
    asks.clear()


def _threads(names: str) -> list[threading.Thread]:
    """Those that are at work; a pool's thread that waits for work ends with its pool."""
    frames = sys._current_frames()
    found = [one for one in threading.enumerate() if one.name.startswith(names) and one.ident in frames]
    return [one for one in found if one.ident and frames[one.ident].f_code.co_filename != pools.__file__]


def _interrupt(threads: list[threading.Thread]) -> None:
    """Raise in threads that do not look whether they are to stop: in an import or a model's code."""
    for thread in threads:
        raise_in(thread.ident or 0, SystemExit)


def raise_in(thread: int, error: type[BaseException]) -> bool:
    """Raise an error in a thread, wherever Python is in it; returns whether it will be.

    Not in the compiler, nor where its lock is waited for: it would stay locked for ever, and a pool that waits for it
    would keep the program. What is being compiled is soon done.
    """
    if _compiles(thread):
        return False
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
    return True


def _compiles(thread: int) -> bool:
    frame = sys._current_frames().get(thread)
    while frame is not None and _COMPILER not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None


threading._register_atexit(_end, _early_asks, _WITH_POOLS)  # type: ignore[attr-defined]
atexit.register(_end, _asks, _OURS)
