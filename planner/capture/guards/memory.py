"""The memory of this process as an array, from its second word on: the first is where a null pointer points."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Bytes of a word. What lies at an address is `words[address // WORD - 1]` and `octets[address - WORD]`.
WORD = 8
_ADDRESSES = 1 << 47


class _Memory:
    __array_interface__ = {"shape": (_ADDRESSES // WORD - 1,), "typestr": "<u8", "data": (WORD, True), "version": 3}  # noqa: RUF012


words: Any = np.asarray(_Memory())
octets: Any = words.view(np.uint8)
