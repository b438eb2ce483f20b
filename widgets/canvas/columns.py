"""Messages to the page: a little JSON, and the bulk of it as columns of numbers in binary buffers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: What a column may be of: the name in the message, and the dtype of its buffer.
_DTYPES: dict[str, np.dtype[Any]] = {"f4": np.dtype("<f4"), "f8": np.dtype("<f8"), "i4": np.dtype("<i4")}


@dataclass(frozen=True, eq=False)
class Message:
    """What a widget sends.

    Args:
        content: plain data, `{"kind": ..., "columns": [[name, dtype, length], ...], ...}`, without NaN and infinity.
        buffers: one per column, in their order.
    """

    content: dict[str, Any]
    buffers: tuple[bytes, ...] = ()

    @property
    def kind(self) -> str:
        """What it is about; a later message replaces the earlier one of its kind."""
        return str(self.content["kind"])


def message(
    kind: str, content: Mapping[str, Any], columns: Mapping[str, tuple[str, ArrayLike]] | None = None
) -> Message:
    """Pack a message.

    Args:
        kind: what it is about.
        content: plain data; numpy's numbers become Python's, and what is no finite number becomes None.
        columns: by name, `"f4"`, `"f8"` or `"i4"` and the numbers.
    """
    packed = {name: np.ascontiguousarray(array, _DTYPES[dtype]) for name, (dtype, array) in (columns or {}).items()}
    heads = [[name, (columns or {})[name][0], len(array)] for name, array in packed.items()]
    body = {"kind": kind, **{key: plain(value) for key, value in content.items()}}
    if heads:
        body["columns"] = heads
    return Message(body, tuple(array.tobytes() for array in packed.values()))


def unpack(sent: Message) -> dict[str, NDArray[Any]]:
    """The columns of a message by name."""
    heads = sent.content.get("columns", [])
    return {
        name: np.frombuffer(data, dtype=_DTYPES[dtype])
        for (name, dtype, _), data in zip(heads, sent.buffers, strict=True)
    }


def plain(value: Any) -> Any:
    """The same value in the types that JSON has; what is no finite number becomes None."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value
