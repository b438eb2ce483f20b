"""Garbage collection: callbacks soon after an object's, which cannot lose a Ctrl-C, and work without it.

Python raises a KeyboardInterrupt wherever the main thread is, and one that is raised in the callback of a weak
reference is lost. So the callback here is a C function, in which nothing is raised, and a thread does the rest.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from threading import Lock, Thread
from weakref import ref

_queues: list[SimpleQueue[ref[object]]] = [SimpleQueue()]  # exactly one; in a list, so that a fork can replace it
_kept: dict[int, tuple[ref[object], Callable[[], object]]] = {}
_lock = Lock()
_watchers: list[Thread] = []


def on_dropped(thing: object, ask: Callable[[], object]) -> None:
    """Call a function in another thread soon after the last reference to an object is gone.

    Args:
        thing: the object; not kept alive, so `ask` must not refer to it.
        ask: the function; must return immediately.
    """
    with _lock:
        reference = ref(thing, _queues[0].put)
        _kept[id(reference)] = reference, ask
        if not any(watcher.is_alive() for watcher in _watchers):
            watcher = Thread(target=_watch, name="dropped objects", daemon=True)
            with suppress(RuntimeError):  # no thread can be started now: callbacks wait until one can
                watcher.start()
                _watchers[:] = [watcher]


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Disable the search for cycles, which takes a third of the time where many objects are made that all stay."""
    enabled = gc.isenabled()
    try:
        gc.disable()  # in here, as a Ctrl-C may come at once
        yield
    finally:
        if enabled:
            gc.enable()


def collection_counts() -> tuple[int, ...]:
    """How often objects of each generation were searched for cycles; what lives on grows old by it."""
    return tuple(generation["collections"] for generation in gc.get_stats())


def oldest_generation_since(counts: tuple[int, ...]) -> int:
    """The oldest generation in which objects may be that were made since `collection_counts` were taken."""
    grown = [generation + 1 for generation, now in enumerate(collection_counts()) if now != counts[generation]]
    return min(max(grown, default=0), len(counts) - 1)


def _after_fork() -> None:
    """Reset the state in a forked child, which has no watcher thread; that thread may have held the queue."""
    _queues[:], _watchers[:] = [SimpleQueue()], []
    _kept.clear()
    _lock.release()


def _watch() -> None:
    while True:
        _kept.pop(id(_queues[0].get()))[1]()  # no local variable: nothing is kept alive while waiting


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_after_fork)
