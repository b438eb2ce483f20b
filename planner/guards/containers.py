"""Containers in which Python keeps values, each with its current contents and a way to replace them."""

from __future__ import annotations

import random
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, MutableMapping
from contextvars import ContextVar
from operator import is_
from types import CellType, FunctionType
from typing import Any, Protocol

import numpy as np
import torch

#: Represents an absent value.
MISSING = object()
#: Represents a value that `put` leaves unchanged.
KEEP = object()


class Container(Protocol):
    """A container of values. Its contents are unchanged if they are item by item the same objects."""

    path: str

    @property
    def target(self) -> object:
        """The underlying Python object."""

    def contents(self) -> tuple[object, ...]:
        """The current contents, including keys if they may change."""

    def put(self, contents: tuple[object, ...]) -> None:
        """Set the contents to what `contents` returned before, or a tuple of the same form."""


class DictItems:
    """A whole dict: an object's, a module's, or a standalone one."""

    def __init__(self, path: str, thing: dict[Any, Any]) -> None:
        self.path, self.thing = path, thing
        # the methods of this class are called, since a user's class may override them
        self._kind: Any = OrderedDict if issubclass(type(thing), OrderedDict) else dict

    @property
    def target(self) -> object:
        """The underlying Python object."""
        return self.thing

    def contents(self) -> tuple[object, ...]:
        """The current contents."""
        return (*dict.keys(self.thing), *dict.values(self.thing))

    def put(self, contents: tuple[object, ...]) -> None:
        """Replace the contents."""
        half = len(contents) // 2
        keys, items = contents[:half], contents[half:]
        if dict.__len__(self.thing) != half or not all(map(is_, dict.keys(self.thing), keys)):
            self._kind.clear(self.thing)
        for key, item in zip(keys, items, strict=True):
            if dict.get(self.thing, key, MISSING) is not item:
                self._kind.__setitem__(self.thing, key, item)

    def change(self, changed: dict[Any, Any], gone: Iterable[Any]) -> None:
        """Set some items, remove others, and leave the rest unchanged."""
        for key in gone:
            self._kind.pop(self.thing, key, None)
        self._kind.update(self.thing, changed)


class Items:
    """A list or a deque.

    Attributes:
        kind: `list` or `deque`, whose methods are called, since a user's class may override them.
    """

    def __init__(self, path: str, thing: list[Any] | deque[Any]) -> None:
        self.path, self.thing = path, thing
        self.kind: Any = list if issubclass(type(thing), list) else deque

    @property
    def target(self) -> object:
        """The underlying Python object."""
        return self.thing

    def contents(self) -> tuple[object, ...]:
        """The current contents."""
        return tuple(self.kind.__iter__(self.thing))

    def put(self, contents: tuple[object, ...]) -> None:
        """Replace the contents."""
        self.kind.clear(self.thing)
        self.kind.extend(self.thing, contents)


class SetItems:
    """A set, in its own iteration order."""

    def __init__(self, path: str, thing: set[Any]) -> None:
        self.path, self.thing = path, thing

    @property
    def target(self) -> object:
        """The underlying Python object."""
        return self.thing

    def contents(self) -> tuple[object, ...]:
        """The current contents."""
        return tuple(set.__iter__(self.thing))

    def put(self, contents: tuple[object, ...]) -> None:
        """Replace the contents."""
        self.thing.clear()
        self.thing.update(contents)


class ClosureCell:
    """A variable that a function closes over."""

    def __init__(self, path: str, thing: CellType) -> None:
        self.path, self.thing = path, thing

    @property
    def target(self) -> object:
        """The underlying Python object."""
        return self.thing

    def contents(self) -> tuple[object, ...]:
        """The current contents."""
        try:
            return (self.thing.cell_contents,)
        except ValueError:  # not assigned yet
            return (MISSING,)

    def put(self, contents: tuple[object, ...]) -> None:
        """Replace the contents."""
        if contents[0] is MISSING:
            del self.thing.cell_contents
        else:
            self.thing.cell_contents = contents[0]


class ContextVariable:
    """A context variable, with its value in the context of the calling thread."""

    def __init__(self, path: str, thing: ContextVar[Any]) -> None:
        self.path, self.thing = path, thing

    @property
    def target(self) -> object:
        """The underlying Python object."""
        return self.thing

    def contents(self) -> tuple[object, ...]:
        """The current contents."""
        return (self.thing.get(MISSING),)

    def put(self, contents: tuple[object, ...]) -> None:
        """Replace the contents."""
        if contents[0] is not MISSING and contents[0] is not self.thing.get(MISSING):
            self.thing.set(contents[0])


class Names:
    """Some names of a namespace: globals, or the attributes of a class or of a Python module."""

    def __init__(self, path: str, namespace: Any, names: Iterable[str], owner: object = None) -> None:
        self.path, self.namespace, self.names, self.owner = path, namespace, tuple(names), owner

    @property
    def target(self) -> object:
        """The underlying Python object."""
        return self.namespace if self.owner is None else self.owner

    def contents(self) -> tuple[object, ...]:
        """The current contents."""
        return tuple([self.namespace.get(name, MISSING) for name in self.names])

    def put(self, contents: tuple[object, ...]) -> None:
        """Replace the contents."""
        for name, value in zip(self.names, contents, strict=True):
            if value is KEEP or self.namespace.get(name, MISSING) is value:
                continue
            if isinstance(self.namespace, MutableMapping):
                if value is MISSING:
                    del self.namespace[name]
                else:
                    self.namespace[name] = value
            elif value is MISSING:
                delattr(self.owner, name)
            else:
                setattr(self.owner, name, value)  # a class only shows its attributes in its namespace


class Slots:
    """The attributes of an object that are in slots and not in a dict."""

    def __init__(self, path: str, thing: object, names: Iterable[str]) -> None:
        self.path, self.thing, self.names = path, thing, tuple(names)

    @property
    def target(self) -> object:
        """The underlying Python object."""
        return self.thing

    def contents(self) -> tuple[object, ...]:
        """The current contents."""
        return tuple([_attribute(self.thing, name) for name in self.names])

    def put(self, contents: tuple[object, ...]) -> None:
        """Replace the contents."""
        for name, value in zip(self.names, contents, strict=True):
            if value is KEEP:
                continue
            if value is not MISSING:
                object.__setattr__(self.thing, name, value)
            elif _attribute(self.thing, name) is not MISSING:
                object.__delattr__(self.thing, name)


class Function:
    """A function: its code and its default arguments."""

    def __init__(self, path: str, thing: FunctionType) -> None:
        self.path, self.thing = path, thing

    @property
    def target(self) -> object:
        """The underlying Python object."""
        return self.thing

    def contents(self) -> tuple[object, ...]:
        """The current contents."""
        return self.thing.__code__, self.thing.__defaults__, self.thing.__kwdefaults__

    def put(self, contents: tuple[object, ...]) -> None:
        """Replace the contents."""
        self.thing.__code__, self.thing.__defaults__, self.thing.__kwdefaults__ = contents  # type: ignore[assignment]


class State:
    """An object whose state is read and set by functions, such as a random generator."""

    def __init__(self, path: str, read: Callable[[], object], write: Callable[[Any], object] | None) -> None:
        self.path, self._read, self._write = path, read, write
        self._known: object = None
        self._last: tuple[object, ...] = ()

    @property
    def target(self) -> object:
        """This object itself, since the state is no Python object of its own."""
        return self

    def contents(self) -> tuple[object, ...]:
        """The current contents."""
        state = self._read()
        if not self._last or state != self._known:
            self._known, self._last = state, (state,)
        return self._last  # the same object for an equal state

    def put(self, contents: tuple[object, ...]) -> None:
        """Replace the contents."""
        if self._write is not None:
            self._write(contents[0])


def elements(path: str, thing: np.ndarray[Any, Any]) -> State:
    """The elements of a NumPy array."""

    def write(bits: bytes) -> None:
        if thing.tobytes() != bits:
            thing[...] = np.frombuffer(bits, thing.dtype).reshape(thing.shape)

    return State(path, thing.tobytes, write)


def generator(path: str, thing: Any) -> State | None:
    """The state of a random generator; None for anything else."""
    if isinstance(thing, random.Random):
        return State(path, thing.getstate, thing.setstate)
    if isinstance(thing, np.random.Generator):
        return generator(path, thing.bit_generator)
    if isinstance(thing, np.random.BitGenerator):
        return State(path, lambda: _words(thing.state), lambda state: setattr(thing, "state", _numbers(state)))
    if isinstance(thing, np.random.RandomState):
        return State(path, lambda: _words(thing.get_state(legacy=False)), lambda s: thing.set_state(_numbers(s)))
    if isinstance(thing, torch.Generator):
        return State(
            path, lambda: bytes(thing.get_state().numpy()),
            lambda bits: thing.set_state(torch.frombuffer(bytearray(bits), dtype=torch.uint8)),
        )  # fmt: skip
    return None


def _words(state: Any) -> object:
    """Return a state with its arrays as bytes, which compare as a whole."""
    if isinstance(state, dict):
        return tuple((key, _words(value)) for key, value in state.items())
    if isinstance(state, np.ndarray):
        return np.ndarray, state.dtype.str, state.tobytes()
    return state


def _numbers(state: Any) -> Any:
    if isinstance(state, tuple) and len(state) == 3 and state[0] is np.ndarray:
        return np.frombuffer(state[2], state[1])
    if isinstance(state, tuple):
        return {key: _numbers(value) for key, value in state}
    return state


def _attribute(thing: object, name: str) -> object:
    try:
        return object.__getattribute__(thing, name)
    except AttributeError:
        return MISSING
