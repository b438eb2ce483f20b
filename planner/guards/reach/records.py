"""What is recorded of values whose contents Python code changes in place: containers, arrays, bytes and states."""

from __future__ import annotations

import array
import ctypes
import functools
import gc
import threading
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from planner.guards import comparison_keys
from planner.guards.comparison_keys import SameObject, Value
from planner.guards.containers import Container, DictItems, Items, SetItems, State, elements, generator
from planner.guards.reach.reading import key_text, progress, size_of, write_bytes

_MOST_ENTRIES = 10_000
_MOST_ARRAY_BYTES = 1 << 24
#: Description of a changed value that is compared as a whole.
OTHER_CONTENTS = "of other contents"
_CACHE = type(functools.cache(len))
_SIMPLE_DATA: Any = ctypes.c_int.__mro__[1]
_VIEWS: Any = type({}.keys()) | type({}.values()) | type({}.items())


@dataclass(frozen=True, slots=True)
class Record:
    """What is recorded of a value.

    Args:
        value: what is compared of it.
        container: reads and restores its contents; None if these are not read.
        children: the paths and values of what is in it, which are visited next.
    """

    value: Value
    container: Container | None = None
    children: Iterable[tuple[str, Any]] = ()


def record_of_state(state: State, shown: str) -> Record:
    """A value that is compared as a whole.

    Args:
        state: reads it.
        shown: describes a changed one.
    """
    return Record(Value("state", state.contents()[0], shown), state)


def record_of_array(path: str, value: np.ndarray[Any, Any]) -> Record:
    """A NumPy array; a large one is compared by identity."""
    if value.dtype.hasobject or value.nbytes > _MOST_ARRAY_BYTES:
        return Record(comparison_keys.identity(value))
    state = elements(path, value)
    bits = (value.shape, value.dtype.str, state.contents()[0])
    return Record(Value(np.ndarray, bits, f"a NumPy array {str(value.tolist())[:60]}"), state)


def record_of_container(path: str, value: Any) -> Record:
    """A dict, list, deque or set; of a large one, its size is compared."""
    size = size_of(value)
    if size > _MOST_ENTRIES:
        return Record(Value(type(value), (SameObject(value), size), f"of {size} entries"))
    structure = comparison_keys.structure(value)
    if issubclass(type(value), dict):
        entries = [(f"{path}[{key_text(key)}]", item) for key, item in list(dict.items(value))]
        return Record(structure, DictItems(path, value), entries)
    items = SetItems(path, value) if issubclass(type(value), set) else Items(path, value)
    contents = items.contents()
    if isinstance(items, SetItems) and all(map(comparison_keys.is_plain, contents)):
        return Record(Value(set, frozenset(map(comparison_keys.plain, contents)), "another set"), items)
    return Record(structure, items, [(f"{path}[{index}]", item) for index, item in enumerate(contents)])


def record_of_library_object(path: str, value: Any) -> Record | None:
    """An object of Python's, NumPy's or PyTorch's own that has contents or a state; None for any other."""
    if isinstance(value, bytearray | array.array | ctypes.Array | ctypes.Structure | _SIMPLE_DATA):
        return _record_of_bytes(path, value)
    if isinstance(value, threading.Event):
        state = State(path, value.is_set, lambda on: value.set() if on else value.clear())
        return record_of_state(state, OTHER_CONTENTS)
    if isinstance(value, MappingProxyType | _VIEWS):
        viewed = [(path, one) for one in gc.get_referents(value) if isinstance(one, dict)]
        return Record(comparison_keys.structure(value), None, viewed)
    if isinstance(value, weakref.WeakKeyDictionary | weakref.WeakValueDictionary):
        return Record(comparison_keys.structure(value), None, [(path, vars(value)["data"])])
    if (known := generator(path, value) or progress(path, value)) is not None:
        return record_of_state(known, "in another state")
    if isinstance(value, _CACHE):
        size = State(path, lambda: value.cache_info().currsize, None)
        compared = Value("cache", (SameObject(value), *size.contents()), "filled otherwise")
        return Record(compared, size, [(path, value.__wrapped__)])
    return None


def _record_of_bytes(path: str, value: Any) -> Record:
    """A value whose memory Python code writes to."""
    if memoryview(value).nbytes > _MOST_ARRAY_BYTES:
        return Record(comparison_keys.identity(value))
    write = functools.partial(write_bytes, value)
    return record_of_state(State(path, lambda: memoryview(value).tobytes(), write), OTHER_CONTENTS)
