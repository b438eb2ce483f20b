"""Spans in which storages are away from the device: what a walk decides."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.swap.problem.problem import Flags, Ints

#: A reload that never happens.
NEVER = np.int32(2**31 - 1)


class Gaps(NamedTuple):
    """Spans in which storages are away from the device.

    Storage `storage[k]` may be copied out once slot `ready[k]` is done (where `copy[k]`; its host copy is still valid
    otherwise), its memory is free from slot `release[k]` (-1: since before the step), reserved again from slot
    `reload[k]` (`NEVER`: it does not come back) and needed in slot `use[k]`.
    """

    storage: Ints
    ready: Ints
    release: Ints
    reload: Ints
    use: Ints
    copy: Flags


def blank_gaps(count: int) -> Gaps:
    """Room for so many gaps."""
    storage, ready, release, reload, use = (np.empty(count, np.int32) for _ in range(5))
    return Gaps(storage, ready, release, reload, use, np.empty(count, np.bool_))


def first_gaps(gaps: Gaps, count: int) -> Gaps:
    """A copy of the first so many gaps."""
    return Gaps(
        gaps.storage[:count].copy(), gaps.ready[:count].copy(), gaps.release[:count].copy(),
        gaps.reload[:count].copy(), gaps.use[:count].copy(), gaps.copy[:count].copy(),
    )  # fmt: skip
