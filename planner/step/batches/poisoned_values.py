"""Poisoned values, which may be passed around but not used: every use is recorded and raises.

A poisoned value reports the type of the value it replaces, since a step is captured again for another type; arithmetic,
comparison, printing, hashing and iteration are detected, even if the error is caught.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

#: Binary operators, and the other special methods that the interpreter calls on objects of any type.
_BINARY = (
    "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and", "xor",
    "or",
)  # fmt: skip
_UNARY = (
    "eq", "ne", "lt", "le", "gt", "ge", "hash", "bool", "len", "str", "repr", "format", "bytes", "int", "float",
    "index", "complex", "round", "trunc", "floor", "ceil", "neg", "pos", "abs", "invert", "fspath", "reduce",
    "reduce_ex", "getstate", "dir", "sizeof", "length_hint", "setattr", "delattr",
)  # fmt: skip
#: Special methods of some types only; code may check for their presence.
_OPTIONAL = (
    "call", "iter", "next", "getitem", "setitem", "delitem", "contains", "reversed", "enter", "exit", "await", "array",
    "array_interface", "buffer",
)  # fmt: skip
_OWN = frozenset({"__class__", "__deepcopy__", "__copy__"})


class PoisonError(Exception):
    """A value was used that the step was assumed not to use."""


class Used:
    """Records whether any of the values poisoned with it was used."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.names)


class Poison:
    """Replaces a value of another type; created by `poisoned`."""

    __slots__ = ()


def poisoned(value: Any, name: str, used: Used) -> Any:
    """The replacement of a plain value; in a list or tuple, each entry is replaced; None stays None.

    Args:
        value: the plain value.
        name: the name of the value.
        used: records the name when the value is used.
    """
    if value is None:
        return None
    if type(value) in (list, tuple):
        return type(value)(poisoned(item, name, used) for item in value)
    kind: Any = type(value)
    return _poison_type(kind)(name, used)


@lru_cache(maxsize=256)
def _poison_type(original: Any) -> Callable[[str, Used], Any]:
    """A class whose instances look like those of another and raise on every use."""

    attribute_names = {name for owner in original.__mro__ for name in vars(owner)}

    def record_use(self: Any) -> PoisonError:
        name, used = object.__getattribute__(self, "_name_and_used")
        used.names.append(name)
        return PoisonError(f"{name} is used")

    def method(self: Any, *args: Any, **named: Any) -> Any:
        del args, named
        raise record_use(self)

    def get(self: Any, name: str) -> Any:
        if name in _OWN:
            return object.__getattribute__(self, name)
        if name not in attribute_names and not original.__flags__ & (1 << 9) and original.__dictoffset__ == 0:
            raise AttributeError(f"'{original.__name__}' object has no attribute '{name}'")
        raise record_use(self)

    def return_self(self: Any, *_: Any) -> Any:
        return self

    def initialise(self: Any, name: str, used: Used) -> None:
        object.__setattr__(self, "_name_and_used", (name, used))

    names = [f"__{name}__" for name in (*_BINARY, *_UNARY)]
    names += [f"__{prefix}{name}__" for name in _BINARY for prefix in "ri"]
    names += [name for name in (f"__{name}__" for name in _OPTIONAL) if name in attribute_names]
    body: dict[str, Any] = dict.fromkeys(names, method)
    body |= {
        "__slots__": ("_name_and_used",),
        "__init__": initialise,
        "__getattribute__": get,
        "__class__": property(lambda _: original),
    }
    if not callable(getattr(original, "__deepcopy__", None)):
        body |= {"__deepcopy__": return_self, "__copy__": return_self}
    kind: Callable[[str, Used], Any] = type(f"Poisoned{original.__name__}", (Poison,), body)
    return kind
