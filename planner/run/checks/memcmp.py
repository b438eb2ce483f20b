"""Byte-wise comparison of many tensors with others, at memory bandwidth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from planner.guards import WORD, octets, words
from planner.jit import kernel


class Areas:
    """Pairs of tensors whose bytes are compared.

    Args:
        these, those: contiguous tensors, pairwise of equal size; they are kept alive, and must not move in memory.
    """

    def __init__(self, these: Sequence[Tensor], those: Sequence[Tensor]) -> None:
        self._kept = these, those
        sizes = np.fromiter((one.nbytes for one in these), np.int64, len(these))
        self._begins_and_sizes = places(these) - WORD, places(those) - WORD, sizes

    def differ(self) -> bool:
        """Whether any byte differs."""
        return bool(_differ(words, octets, *self._begins_and_sizes))


def places(tensors: Sequence[Tensor]) -> Any:
    """The address of each tensor's first element."""
    return np.fromiter(map(Tensor.data_ptr, tensors), np.int64, len(tensors))


@kernel
def _differ(words: Any, octets: Any, these: Any, those: Any, sizes: Any) -> bool:
    for pair in range(len(sizes)):
        this, that, size = these[pair], those[pair], sizes[pair]
        whole = size // WORD if this % WORD == 0 and that % WORD == 0 else 0
        one, other = words[this // WORD : this // WORD + whole], words[that // WORD : that // WORD + whole]
        different = np.uint64(0)
        for word in range(len(one)):  # no early exit, so that the loop is vectorised
            different |= one[word] ^ other[word]
        for octet in range(whole * WORD, size):
            different |= octets[this + octet] ^ octets[that + octet]
        if different:
            return True
    return False
