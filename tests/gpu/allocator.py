"""PyTorch's allocator of a GPU, as far as what it counts: blocks in segments, the most at once, and a limit.

Segments are given back with their last block, as if the limit were always near.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import finalize

import torch

MIB = 2**20
TOTAL = 2**33


class Allocator:
    """Counts blocks.

    Args:
        total: bytes of the GPU.

    Attributes:
        allocated, most: bytes of blocks, now and at most since that was reset.
        others: bytes of the GPU that other processes take.
        fraction: of the GPU, which the segments may take.
        fractions: every one that was set, in order.
    """

    def __init__(self, total: int = TOTAL) -> None:
        self.total, self.allocated, self.most, self.others = total, 0, 0, 0
        self.fraction, self.fractions = 1.0, list[float]()
        self._blocks = Counter[int]()

    @property
    def reserved(self) -> int:
        """Bytes of segments."""
        small = sum(size * count for size, count in self._blocks.items() if size <= MIB)
        shared = sum(size * count for size, count in self._blocks.items() if MIB < size < 10 * MIB)
        own = sum(_up(size, 2 * MIB) * count for size, count in self._blocks.items() if size >= 10 * MIB)
        return _up(small, 2 * MIB) + _up(shared, 20 * MIB) + own

    def take(self, size: int) -> None:
        """Hand out a block."""
        self._blocks[size] += 1
        if self.reserved > min(self.fraction * self.total, self.total - self.others):
            self._blocks[size] -= 1
            raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size / MIB:.2f} MiB.\nMore of it")
        self.allocated += size
        self.most = max(self.most, self.allocated)

    def give_back(self, size: int) -> None:
        """Take a block back."""
        self._blocks[size] -= 1
        self.allocated -= size

    @contextmanager
    def holding(self, size: int) -> Iterator[None]:
        """Hand out a block for a while."""
        self.take(size)
        try:
            yield
        finally:
            self.give_back(size)

    def follow(self, tensor: torch.Tensor) -> None:
        """Hand out the memory of a tensor, until nobody has it."""
        size = tensor.nbytes
        if size:
            self.take(size)
            finalize(tensor, self.give_back, size)

    def reset(self) -> None:
        """Forget the most."""
        self.most = self.allocated

    def limit(self, fraction: float) -> None:
        """Let segments take no more than a share of the GPU."""
        assert 0 <= fraction <= 1
        self.fraction = fraction
        self.fractions.append(fraction)

    def free_and_total(self) -> tuple[int, int]:
        """Bytes of the GPU that nobody takes, and all of them."""
        return self.total - self.others - self.reserved, self.total


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
