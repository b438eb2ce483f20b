"""Temporary memory of a call: what it allocates at once besides the memory it was given."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

from planner.capture.torch_private import allocations


def temporary_bytes(call: Callable[[], object]) -> int:
    """The most bytes that a call holds at once in memory it allocates itself.

    What it returns is counted too. PyTorch's allocator reports every allocation and release; what a kernel's library
    keeps from call to call for itself does not go through it.

    Args:
        call: run once.
    """
    return max(accumulate(allocations(call), initial=0))
