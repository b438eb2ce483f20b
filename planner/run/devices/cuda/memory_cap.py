"""A limit on what PyTorch's allocator takes of a GPU, so that it refuses what goes over a plan's budget.

The allocator takes segments of the GPU's memory, hands out blocks of them, and keeps the segments of blocks that came
back. At the limit it first gives kept segments back to the GPU, for which it waits until the GPU has done all its work,
and then refuses.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

_MIB = 2**20
#: Blocks up to 1 MiB share segments of 2 MiB, larger ones up to 10 MiB segments of 20 MiB; still larger ones have
#: segments of their own, rounded up to 2 MiB.
_SMALL_SEGMENT, _SHARED_SEGMENT, _ROUNDED_TO = 2 * _MIB, 20 * _MIB, 2 * _MIB
#: A stream's blocks have segments of their own, and so have those of graphs. The stream of the calling thread has the
#: arena, that of the kernels the scratch memory of calls made alone, and the graphs have that of theirs.
_POOLS = 3
#: What segments may take beyond the blocks in them: in each pool a nearly empty one of either kind, and the rounding of
#: a large one.
SLACK_BYTES = _POOLS * (_SMALL_SEGMENT + _SHARED_SEGMENT + _ROUNDED_TO)


class MemoryCap:
    """Limits what this process takes of a GPU, beyond what it has taken when this is made.

    Args:
        device: the GPU.

    Attributes:
        before: bytes that the allocator holds when this is made.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        torch.cuda.empty_cache()  # what nobody uses would be taken twice: now, and again by the run
        self.before = int(torch.cuda.memory_reserved(device))
        self._total = int(torch.cuda.mem_get_info(device)[1])
        self._allocated: int | None = None  # between two steps, where nobody but the run has taken more

    @contextmanager
    def within(self, budget_bytes: int) -> Iterator[None]:
        """Within the block, let PyTorch's allocator refuse to take more; all threads of this process share the limit.

        What the program takes between two blocks raises the limit. A lower one that it has set itself stays.

        Args:
            budget_bytes: what may be taken in addition, without `SLACK_BYTES`.
        """
        allocated, is_first = self._allocated_now(), self._allocated is None
        if self._allocated is None:
            self._allocated = allocated
        others = self.before + max(0, allocated - self._allocated)
        own = torch.cuda.get_per_process_memory_fraction(self._device)
        most = (others + budget_bytes + SLACK_BYTES) / self._total
        torch.cuda.set_per_process_memory_fraction(min(own, most), self._device)
        try:
            yield
        finally:
            torch.cuda.set_per_process_memory_fraction(own, self._device)
            if is_first:
                self._allocated = self._allocated_now()  # with what libraries keep from their first calls on

    def _allocated_now(self) -> int:
        return int(torch.cuda.memory_allocated(self._device))
