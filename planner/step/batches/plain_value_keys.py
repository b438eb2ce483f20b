"""Comparison keys for plain values of a batch: NaN equals itself, and 1, True, 1.0 and -0.0 are four values."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import marshal
import pathlib
import struct
import types
import uuid
from array import array
from collections.abc import Hashable
from hashlib import blake2b
from typing import Any

import numpy as np
import torch

from planner.errors import StowageError

#: Types whose values are complete descriptions.
ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes})
#: Most bytes of a plain value, which are compared in each step; larger data must be passed as tensors.
MOST_BYTES = 64 * 2**20

_FLOAT, _COMPLEX = struct.Struct("<d"), struct.Struct("<dd")
_BUFFERS = (bytearray, memoryview, array)
_ARRAYS = (np.ndarray, np.memmap, np.matrix, np.recarray)
#: Immutable types whose `repr` is a complete description.
_IMMUTABLE = frozenset({
    range, slice, decimal.Decimal, fractions.Fraction, datetime.date, datetime.datetime, datetime.time,
    datetime.timedelta, uuid.UUID, pathlib.PurePosixPath, pathlib.PosixPath, pathlib.PureWindowsPath, torch.Size,
})  # fmt: skip
#: Types whose values are unique immutable objects.
_UNIQUE_TYPES = (enum.Enum, type, types.ModuleType, torch.dtype, torch.layout, torch.memory_format)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
_UNIQUE = frozenset({type(Ellipsis), type(NotImplemented)})


class ObjectIdentity:
    """A key for an object that is compared by identity alone; keeps the object alive.

    Args:
        value: the object.
    """

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectIdentity) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def is_flat_sequence(value: Any) -> bool:
    """Whether a value is a list or tuple of nothing but numbers, text and None."""
    return type(value) in (list, tuple) and len(value) > 0 and ATOMS.issuperset(map(type, value))


def comparable(kind: type) -> bool:
    """Whether values of a type can be compared without taking them apart."""
    exactly = kind in ATOMS or kind in _IMMUTABLE or kind in _UNIQUE
    return exactly or (kind in _ARRAYS) or issubclass(kind, (*_UNIQUE_TYPES, np.generic, *_BUFFERS))


def value_key(value: Any, name: str) -> Hashable:
    """A hashable key of a plain value as it is now; for an object that cannot be read, its identity.

    Args:
        value: neither a tensor nor an object that is taken apart.
        name: the name of the value in errors.

    Raises:
        StowageError: it is too large to be compared in each step.
    """
    kind = type(value)
    if kind is float:
        return kind, _FLOAT.pack(value)
    if kind is complex:
        return kind, _COMPLEX.pack(value.real, value.imag)
    if kind in ATOMS:
        return kind, value
    if is_flat_sequence(value):
        # marshal version 2 keeps the bits of numbers; version 0 is for text, where later ones encode how it is stored
        return kind, _digest(marshal.dumps(value, 0 if str in set(map(type, value)) else 2), name)
    if kind in _ARRAYS:
        if value.dtype.hasobject:
            items = value.ravel().tolist()
            return kind, value.shape, value.strides, tuple(value_key(item, name) for item in items)
        return kind, repr(value.dtype), value.shape, value.strides, _digest(_bytes(value, name), name)
    if issubclass(kind, np.generic):
        return kind, value.dtype.str, value.tobytes()
    if issubclass(kind, _BUFFERS):
        return kind, _digest(bytes(value), name)
    if kind in _IMMUTABLE:
        return kind, repr(value)
    if kind is tuple:
        return kind, tuple(value_key(item, name) for item in value)
    if kind in (set, frozenset):
        return kind, frozenset(value_key(item, name) for item in value)
    return kind, ObjectIdentity(value)


def opaque(key: Hashable) -> bool:
    """Whether a value is compared by identity alone although it may change.

    Args:
        key: of the value, by `value_key`.
    """
    if not (isinstance(key, tuple) and len(key) == 2 and isinstance(key[1], ObjectIdentity)):
        return False
    kind = type(key[1].value)
    return not (issubclass(kind, (*_UNIQUE_TYPES, *_FUNCTIONS)) or kind in _UNIQUE)


def value_text(value: Any) -> str:
    """A short text for a plain value in an error."""
    kind = type(value)
    if kind in (bool, int, float, complex, type(None)) or (kind in (str, bytes) and len(value) <= 40):
        text = repr(value) if kind is not int or value.bit_length() < 256 else "a large number"
        return text if len(text) <= 60 else "another"
    return f"another {kind.__name__}"


def _bytes(value: Any, name: str) -> bytes:
    if value.nbytes > MOST_BYTES:
        raise StowageError(
            f"{name} is a NumPy array of {value.nbytes >> 20} MiB, too large to be compared in each step: give a "
            "tensor (torch.from_numpy)"
        )
    return bytes(np.ascontiguousarray(value).tobytes())


def _digest(data: bytes, name: str) -> bytes:
    if len(data) > MOST_BYTES:
        raise StowageError(
            f"{name} has {len(data) >> 20} MiB of plain values, too many to be compared in each step: give a tensor"
        )
    return data if len(data) <= 64 else blake2b(data, digest_size=32).digest()
