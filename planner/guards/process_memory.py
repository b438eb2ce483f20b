"""The memory of this process as an array, starting at its second word: a null pointer points to the first."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Bytes per word. The contents of an address are `words[address // WORD - 1]` and `octets[address - WORD]`.
WORD = 8
_ADDRESSES = 1 << 47


class _RawBytes:
    __array_interface__ = {"shape": (_ADDRESSES // WORD - 1,), "typestr": "<u8", "data": (WORD, True), "version": 3}  # noqa: RUF012


words: Any = np.asarray(_RawBytes())
octets: Any = words.view(np.uint8)
