"""Strict readers for parsed JSON: a value is accepted only if it is exactly of the expected type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from math import isfinite
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_LARGEST = 2**62
#: Most characters that the machine's and the method's name in a plan may have.
LONGEST_TEXT = 1000
Row = TypeVar("Row")


class DamageError(ValueError):
    """A malformed value; the message is the middle of a sentence."""


def same_names(data: dict[str, Any], expected: set[str], where: str) -> None:
    """Refuse missing and unknown fields."""
    for name in sorted(expected - set(data)):
        raise DamageError(f"{where} lacks {name}")
    for name in sorted(set(data) - expected):
        raise DamageError(f"{where} has a field {name[:40]!r} that this version does not know")


def whole(value: Any, where: str) -> int:
    """A whole number of 64 bits; neither a bool nor 1.0 is accepted."""
    if type(value) is not int or abs(value) > _LARGEST:
        raise DamageError(f"{where} holds {repr(value)[:40]}, which is not a whole number of 64 bits")
    return value


def whole_or_none(value: Any, where: str) -> int | None:
    """A whole number or null."""
    return None if value is None else whole(value, where)


def number(value: Any, where: str) -> float:
    """A finite number with a decimal point."""
    if type(value) is not float or not isfinite(value):
        raise DamageError(f"{where} holds {repr(value)[:40]}, which is not a number with a decimal point")
    return value


def text(value: Any, where: str) -> str:
    """Text of at most `LONGEST_TEXT` characters."""
    if type(value) is not str:
        raise DamageError(f"{where} holds {repr(value)[:40]}, which is not text")
    if len(value) > LONGEST_TEXT:
        raise DamageError(f"{where} holds {len(value):,} characters, and no name has more than {LONGEST_TEXT:,}")
    return value


def items(value: Any, where: str) -> list[Any]:
    """A list of anything."""
    if type(value) is not list:
        raise DamageError(f"{where} is not a list")
    return value


def objects(value: Any, where: str) -> list[dict[str, Any]]:
    """A list of objects."""
    for item in items(value, where):
        if type(item) is not dict:
            raise DamageError(f"{where} holds {repr(item)[:40]}, which is not an object")
    return list(value)


def _row(value: Any, length: int, where: str) -> list[Any]:
    if type(value) is not list or len(value) != length:
        raise DamageError(f"{where} holds {repr(value)[:40]}, which is not a list of {length} numbers")
    return value


def wholes(value: Any, where: str) -> tuple[int, ...]:
    """A list of whole numbers."""
    return tuple(whole(item, where) for item in items(value, where))


def pairs(value: Any, where: str) -> tuple[tuple[int, int], ...]:
    """A list of pairs of whole numbers."""
    rows = [_row(row, 2, where) for row in items(value, where)]
    return tuple((whole(first, where), whole(second, where)) for first, second in rows)


def table(kind: type[Row]) -> Callable[[Any, str], tuple[Row, ...]]:
    """A reader for a list of rows; `kind` is a dataclass of whole numbers."""
    width = len(fields(kind))  # type: ignore[arg-type]

    def read(value: Any, where: str) -> tuple[Row, ...]:
        rows = (_row(row, width, where) for row in items(value, where))
        return tuple(kind(*(whole(item, where) for item in row)) for row in rows)

    return read


def spans(value: Any, where: str) -> NDArray[np.float64]:
    """`[spans, 2]`, a list of starts and stops."""
    rows = [[number(item, where) for item in _row(row, 2, where)] for row in items(value, where)]
    return np.array(rows, np.float64).reshape(len(rows), 2)


def seconds(value: Any, where: str) -> NDArray[np.float64]:
    """`[times]`, a list of numbers."""
    return np.array([number(item, where) for item in items(value, where)], np.float64)


def amounts(value: Any, where: str) -> NDArray[np.int64]:
    """`[amounts]`, a list of whole numbers."""
    return np.array(wholes(value, where), np.int64)
