"""Columns of the snapshot's lists of dicts as arrays, each value checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from planner.errors import StowageError, did_you_mean
from planner.snapshot.tables import Codes, Ints

_MISSING = object()
#: Above every address, and every sum of sizes.
_LARGEST = 2**62
#: Above every size: 256 TiB.
_LARGEST_SIZE = 2**48


def rows(value: Any, what: str) -> list[dict[str, Any]]:
    """A list of dicts.

    Args:
        value: what should be one.
        what: its name in an error, such as `segments`.

    Raises:
        StowageError: it is something else.
    """
    if not isinstance(value, list):
        raise StowageError(f"its {what} are {type(value).__name__}, not a list")
    if set(map(type, value)) - {dict}:
        wrong = next(one for one in value if type(one) is not dict)
        raise StowageError(f"one of its {what} is {type(wrong).__name__}, not a dict")
    return cast("list[dict[str, Any]]", value)


def column(table: Sequence[dict[str, Any]], name: str, what: str, default: Any = _MISSING) -> list[Any]:
    """One field of every row.

    Raises:
        StowageError: a row does not have it, and there is no default.
    """
    if default is not _MISSING:
        return [row.get(name, default) for row in table]
    try:
        return [row[name] for row in table]
    except KeyError:
        at = next(at for at, row in enumerate(table) if name not in row)
        raise StowageError(f"{what} {at:,} has no {name}") from None


def whole(values: Sequence[Any], name: str, what: str, least: int = 0) -> Ints:
    """Whole numbers as an array.

    Args:
        values: one per row.
        name: of the field.
        what: what a row is, such as `event`.
        least: the least that is possible.

    Raises:
        StowageError: one is no whole number, below the least, or beyond all addresses.
    """
    if set(map(type, values)) - {int}:
        at = next(at for at, value in enumerate(values) if type(value) is not int)
        raise StowageError(f"{name} of {what} {at:,} is {type(values[at]).__name__}, not a whole number")
    try:
        array = np.array(values, np.int64)
    except OverflowError:
        array = None
    if array is None or not (least <= array.min(initial=least) and array.max(initial=least) < _LARGEST):
        at = next(at for at, value in enumerate(values) if not least <= value < _LARGEST)
        wrong = values[at] if abs(values[at]) < _LARGEST else "beyond all addresses"
        raise StowageError(f"{name} of {what} {at:,} is {wrong}, which no allocator writes")
    return array


def sizes(values: Sequence[Any], name: str, what: str) -> Ints:
    """Amounts of memory as an array, whose sum is an int64 too.

    Raises:
        StowageError: one is no whole number, negative, or larger than any device.
    """
    array = whole(values, name, what)
    over = np.flatnonzero(array >= _LARGEST_SIZE)
    if len(over) or float(array.sum(dtype=np.float64)) >= _LARGEST:
        at = over[0] if len(over) else int(array.argmax())
        raise StowageError(f"{name} of {what} {at:,} is {array[at]:,} bytes, more than any device has")
    return array


def codes(values: Sequence[Any], known: dict[str, int], name: str, what: str) -> Codes:
    """Words as their positions in a list.

    Raises:
        StowageError: one is not in it.
    """
    try:
        return np.array([known[value] for value in values], np.int8)
    except (KeyError, TypeError):
        at = next(at for at, value in enumerate(values) if not (isinstance(value, str) and value in known))
        value = values[at]
        said = f"{value[:40]!a}{did_you_mean(value[:40], known)}" if isinstance(value, str) else type(value).__name__
        raise StowageError(f"{name} of {what} {at:,} is {said}, which PyTorch 2.11 to 2.13 never writes") from None
