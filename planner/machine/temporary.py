"""Temporary memory of a call: what it allocates at once besides the memory it was given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import accumulate

from planner.capture.torch_private import allocations
from planner.machine.values import Filling

#: Ops whose temporary memory follows from values, and values that let them take the most: powers of a matrix follow
#: from its norm, what is sorted from how many differ. Whole numbers that are indices are left as they are.
SIZED_BY_VALUES: Mapping[str, tuple[Filling, ...]] = {
    "linalg_matrix_exp": tuple(Filling(number, 0) for number in (1e-3, 0.05, 0.5, 3.0, 100.0)),
    "isin": (Filling(0.5, None),),
    "_embedding_bag_backward": (),
    "_embedding_bag_dense_backward": (),
}


def temporary_bytes(call: Callable[[], object]) -> int:
    """The most bytes that a call holds at once in memory it allocates itself.

    What it returns is counted too. PyTorch's allocator reports every allocation and release; what a kernel's library
    keeps from call to call for itself does not go through it.

    Args:
        call: run once.
    """
    return max(accumulate(allocations(call), initial=0))
