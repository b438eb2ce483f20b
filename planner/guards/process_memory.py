"""The memory of this process as an array, starting at its second word: a null pointer points to the first."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Bytes per word. At an address are `memory_words[address // WORD - 1]` and `memory_bytes[address - WORD]`.
WORD = 8
_ADDRESSES = 1 << 47


class _RawBytes:
    __array_interface__ = {"shape": (_ADDRESSES // WORD - 1,), "typestr": "<u8", "data": (WORD, True), "version": 3}  # noqa: RUF012


memory_words: Any = np.asarray(_RawBytes())
memory_bytes: Any = memory_words.view(np.uint8)
