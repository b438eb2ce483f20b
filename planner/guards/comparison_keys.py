"""Python values in comparable form: by type and bits if they have any, else by identity."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range, slice})
_TORCH_PLAIN = (torch.dtype, torch.device, torch.layout, torch.memory_format)
_MAX_TEXT = 60


class Value:
    """A value in a form that compares and hashes: a NaN equals itself; 0.0 and -0.0, and 1, 1.0 and True, differ.

    Args:
        kind: what it is, such as its type.
        bits: everything else that is compared; hashable.
        text: the value as text, for messages.
    """

    __slots__ = ("bits", "kind", "text")

    def __init__(self, kind: object, bits: object, text: str) -> None:
        self.kind, self.bits, self.text = kind, bits, text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and self.kind == other.kind and self.bits == other.bits

    def __hash__(self) -> int:
        return hash((self.kind, self.bits))

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


class SameObject:
    """An object that equals nothing but itself, and is kept alive so that its identity is not reused."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameObject) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def is_plain(value: object) -> bool:
    """Whether a value is immutable and nothing but its bits."""
    return type(value) in _PLAIN or isinstance(value, (*_TORCH_PLAIN, np.generic, enum.Enum))


def as_plain(value: object) -> object:
    """The number or text that an instance of a user's class is, apart from its attributes; None for others."""
    kind: Any = next((kind for kind in (int, float, complex, str, bytes) if isinstance(value, kind)), None)
    return None if kind is None else kind.__getnewargs__(value)[0]  # no method of the user's is called


def plain(value: object) -> Value:
    """A plain value in comparable form."""
    if isinstance(value, enum.Enum):
        return Value(enum.Enum, SameObject(value), str(value))
    text = repr(value)  # of a float: all of its bits except those of a NaN
    if isinstance(value, np.generic):
        return Value(type(value), value.tobytes(), _short(text))
    return Value(type(value), text if type(value) in (float, complex, slice) else value, _short(text))


def identity(value: object, text: str = "") -> Value:
    """A value that is compared by identity alone."""
    return Value(type(value), SameObject(value), text or f"another {type(value).__name__}")


def structure(value: Any, text: str = "") -> Value:
    """A container, whose type is compared here and whose contents are compared elsewhere."""
    return Value("container", type(value), text or f"a {type(value).__name__}")


def tensor(value: torch.Tensor, same: str, shared: str) -> Value:
    """A tensor's metadata in comparable form.

    Args:
        value: the tensor.
        same, shared: the path where the same tensor, or one in the same memory, was found first.
    """
    if is_lazy(value):
        return Value("tensor", SameObject(value), "a tensor without a shape")
    layout = (value.stride(), value.storage_offset()) if value.layout is torch.strided else None
    bits = (
        tuple(value.shape),
        layout,
        value.dtype,
        value.requires_grad,
        value.layout,
        isinstance(value, nn.Parameter),
        same,
        shared,
    )
    return Value("tensor", bits, f"a tensor of shape {list(value.shape)} and {value.dtype}")


def _short(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
