"""Interpreter exit: threads are asked to stop and joined, because PyTorch aborts if one is in a kernel at exit."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import thread as pools  # registers its own exit handler on import, which then runs after ours
from time import perf_counter, sleep
from typing import Any
from weakref import ref

#: Prefix of the names of all our threads, and of those threads that wait for a thread pool or belong to one.
_OURS, _WITH_POOLS = "stowage", "stowage-search"
#: Seconds that threads have to end by themselves before they are interrupted, and before they are abandoned.
_GENTLE_SECONDS, _SECONDS = 0.6, 1.8
_LOOK_SECONDS, _AGAIN_SECONDS = 0.01, 0.4
#: Part of the path of every file of numba.
_COMPILER = f"{os.sep}numba{os.sep}"

#: Objects and their methods. Dead entries are removed when another is added: the weak references have no callback, as
#: those of a WeakMethod would, since a KeyboardInterrupt raised in a callback is lost.
_Asks = set[tuple[ref[Any], Callable[[Any], object]]]
_asks: _Asks = set()
_early_asks: _Asks = set()


def on_shutdown(ask: Callable[[], object], *, early: bool = False) -> None:
    """Register a method that asks threads to stop at interpreter exit; threads named `stowage…` are then joined.

    Args:
        ask: method of an object that is not kept alive; must return immediately, and may be called twice.
        early: call it as soon as the main thread has ended. Only work that uses a thread pool must stop that early,
            because Python joins pools then; other work may go on as long as any thread of the program does.
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
    _expect_lost_exits()
    began = interrupted = perf_counter()
    while (left := _threads(names)) and (now := perf_counter()) < began + _SECONDS:
        if now > began + _GENTLE_SECONDS and now > interrupted + _AGAIN_SECONDS:
            interrupted = now
            _interrupt(left)
        sleep(_LOOK_SECONDS)
    asks.clear()


def _threads(names: str) -> list[threading.Thread]:
    """Our threads that are busy; an idle pool thread is left out, since it ends with its pool."""
    frames = sys._current_frames()
    found = [one for one in threading.enumerate() if one.name.startswith(names) and one.ident in frames]
    return [one for one in found if one.ident and frames[one.ident].f_code.co_filename != pools.__file__]


def _interrupt(threads: list[threading.Thread]) -> None:
    """Raise SystemExit in threads that do not check for cancellation: those in an import or in a model's code."""
    for thread in threads:
        raise_in(thread.ident or 0, SystemExit)


def _expect_lost_exits() -> None:
    """Say nothing of a SystemExit that is raised in the callback of a weak reference: it is lost, and raised again."""
    report = sys.unraisablehook

    def unless_exit(lost: sys.UnraisableHookArgs) -> None:
        if not issubclass(lost.exc_type, SystemExit):
            report(lost)

    sys.unraisablehook = unless_exit


def raise_in(thread: int, error: type[BaseException]) -> bool:
    """Raise an error in a thread, wherever its Python code is; returns whether the error will be raised.

    It is not raised inside the compiler or while waiting for the compiler's lock: the lock would stay held forever, and
    a pool waiting for it would keep the program alive. Compilation ends soon.
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
