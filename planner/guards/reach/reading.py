"""What is read of a value without calling any code of the user's."""

from __future__ import annotations

import array
import ctypes
import itertools
import weakref
from collections import deque
from types import GeneratorType
from typing import Any

from planner.guards import comparison_keys
from planner.guards.containers import State

_ITERATORS: tuple[Any, ...] = (
    itertools.count, itertools.cycle, itertools.islice, itertools.chain, itertools.repeat, itertools.accumulate,
    type(iter([])), type(iter(())), type(iter(range(0))), type(iter("")), enumerate, zip, map, filter, reversed,
)  # fmt: skip


def progress(path: str, value: Any) -> State | None:
    """The progress of an iterator, which can be read but not restored; None for anything else."""
    if isinstance(value, GeneratorType):
        return State(path, lambda: _suspended(value), None)
    if type(value) in _ITERATORS:
        return State(path, lambda: repr(_reduced_form(value)), None)
    return None


def _suspended(value: GeneratorType[Any, Any, Any]) -> object:
    """Where a generator function is suspended, and its plain local variables."""
    frame = value.gi_frame
    if frame is None:
        return None
    return frame.f_lasti, tuple((name, _number_in(item)) for name, item in frame.f_locals.items())


def _number_in(item: object) -> object:
    if comparison_keys.is_plain(item):
        return comparison_keys.plain(item)
    return repr(_reduced_form(item)) if type(item) in _ITERATORS else None


def _reduced_form(value: Any) -> object:
    try:
        return value.__reduce__()
    except TypeError:
        return None


def write_bytes(value: Any, bits: bytes) -> None:
    """Restore the memory of a Python array or a C number."""
    if memoryview(value).nbytes != len(bits):
        return
    if isinstance(value, bytearray | array.array):
        memoryview(value).cast("B")[:] = bits
    else:
        ctypes.memmove(ctypes.addressof(value), bits, len(bits))


def plain_attributes(reference: weakref.ref[Any]) -> object:
    """The plain values among the attributes of an object, without keeping it alive; None once it is dead."""
    thing = reference()
    if thing is None:
        return None
    table = dict_of(thing)
    items = list(dict.items(table)) if isinstance(table, dict) else []
    return tuple((name, comparison_keys.plain(item)) for name, item in items if comparison_keys.is_plain(item))


def dict_of(value: Any) -> object:
    """The attributes of an object, a dict; something else if it has none."""
    try:
        return object.__getattribute__(value, "__dict__")
    except Exception:  # a class may define its own
        return None


def size_of(value: Any) -> int:
    """How many entries a dict, list, deque or set has."""
    kind = next(kind for kind in (dict, list, deque, set) if issubclass(type(value), kind))
    return int(kind.__len__(value))


def slots_of(kind: type) -> tuple[str, ...]:
    """The names of the slots that a class adds, as its objects have them."""
    names = vars(kind).get("__slots__", ())
    names = (names,) if isinstance(names, str) else tuple(names)
    return tuple(
        f"_{kind.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
        for name in names if name not in ("__dict__", "__weakref__")
    )  # fmt: skip


def key_text(key: object) -> str:
    """A key of a dict, as it is written in a path."""
    return repr(key)[:60] if comparison_keys.is_plain(key) else f"a {type(key).__name__}"
