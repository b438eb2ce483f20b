"""Byte-wise comparison of many tensors with others, at memory bandwidth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from planner.guards import WORD, memory_bytes, memory_words
from planner.jit import kernel


def areas_differ(these: Sequence[Tensor], those: Sequence[Tensor]) -> Callable[[], bool]:
    """A check of whether any byte of some tensors differs from others'.

    Args:
        these, those: contiguous tensors in host memory, pairwise of equal size; they are kept alive, and must not move.
    """
    kept = tuple(these), tuple(those)
    sizes = np.fromiter((one.nbytes for one in these), np.int64, len(these))
    one, other = (np.fromiter(map(Tensor.data_ptr, tensors), np.int64, len(tensors)) - WORD for tensors in kept)

    def differ() -> bool:
        assert kept  # alive as long as this check is
        return bool(_differ(memory_words, memory_bytes, one, other, sizes))

    return differ


@kernel
def _differ(words: Any, single_bytes: Any, these: Any, those: Any, sizes: Any) -> bool:
    for pair in range(len(sizes)):
        this, that, size = these[pair], those[pair], sizes[pair]
        whole = size // WORD if this % WORD == 0 and that % WORD == 0 else 0
        one, other = words[this // WORD : this // WORD + whole], words[that // WORD : that // WORD + whole]
        different = np.uint64(0)
        for word in range(len(one)):  # no early exit, so that the loop is vectorised
            different |= one[word] ^ other[word]
        for byte in range(whole * WORD, size):
            different |= single_bytes[this + byte] ^ single_bytes[that + byte]
        if different:
            return True
    return False
