"""Messages to the page: JSON content, and columns of numbers in binary buffers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Column types: the name in the message, and the dtype of the buffer.
_DTYPES: dict[str, np.dtype[Any]] = {"f4": np.dtype("<f4"), "f8": np.dtype("<f8"), "i4": np.dtype("<i4")}


@dataclass(frozen=True, eq=False)
class Message:
    """A message from a widget to the page.

    Args:
        content: plain data, `{"kind": ..., "columns": [[name, dtype, length], ...], ...}`, without NaN and infinity.
        buffers: one per column, in their order.
    """

    content: dict[str, Any]
    buffers: tuple[bytes, ...] = ()

    @property
    def kind(self) -> str:
        """The kind of message; a later message replaces the earlier one of its kind."""
        return str(self.content["kind"])


def message(
    kind: str, content: Mapping[str, Any], columns: Mapping[str, tuple[str, ArrayLike]] | None = None
) -> Message:
    """Pack a message.

    Args:
        kind: the kind of message.
        content: plain data; numpy scalars become Python numbers, and NaN and infinity become None.
        columns: by name, the type `"f4"`, `"f8"` or `"i4"` and the numbers.
    """
    packed = {name: np.ascontiguousarray(array, _DTYPES[dtype]) for name, (dtype, array) in (columns or {}).items()}
    heads = [[name, (columns or {})[name][0], len(array)] for name, array in packed.items()]
    body = {"kind": kind, **{key: plain(value) for key, value in content.items()}}
    if heads:
        body["columns"] = heads
    return Message(body, tuple(array.tobytes() for array in packed.values()))


def changed(sent: Message, **fields: Any) -> Message:
    """The same message with other values in some fields."""
    return Message({**sent.content, **fields}, sent.buffers)


def unpack(sent: Message) -> dict[str, NDArray[Any]]:
    """The columns of a message by name."""
    heads = sent.content.get("columns", [])
    return {
        name: np.frombuffer(data, dtype=_DTYPES[dtype])
        for (name, dtype, _), data in zip(heads, sent.buffers, strict=True)
    }


def plain(value: Any) -> Any:
    """The same value in JSON types; NaN and infinity become None."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value
