"""Scratch memory of a call: the memory that it allocates itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import accumulate

from planner.profile.synthetic_inputs import Filling
from planner.torch_private import allocations

#: Ops whose scratch memory depends on values, and values that maximise it: the powers of a matrix depend on its norm,
#: the size of a sort on the number of distinct values. Integers that are indices are left as they are.
SIZED_BY_VALUES: Mapping[str, tuple[Filling, ...]] = {
    "linalg_matrix_exp": tuple(Filling(number, 0) for number in (1e-3, 0.05, 0.5, 3.0, 100.0)),
    "isin": (Filling(0.5, None),),
    "_embedding_bag_backward": (),
    "_embedding_bag_dense_backward": (),
}


def scratch_bytes(call: Callable[[], object]) -> int:
    """The most bytes that a call holds at once in memory it allocates itself.

    Its results are counted too. PyTorch's allocator reports every allocation and release; memory that a kernel library
    caches internally between calls does not go through it.

    Args:
        call: run once.
    """
    return max(accumulate(allocations(call), initial=0))
