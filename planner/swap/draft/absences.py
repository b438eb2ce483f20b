"""Spans in which storages are off the device, as an eviction pass decides them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.swap.problem.problem import Flags, Ints

#: A reload that never happens.
NEVER = np.int32(2**31 - 1)


class Absences(NamedTuple):
    """Spans in which storages are off the device.

    Storage `storage[k]` may be copied out once slot `ready[k]` is done (if `copy[k]`; otherwise its host copy is still
    valid), its memory is free from slot `release[k]` (-1: since before the step), reserved again from slot `reload[k]`
    (`NEVER`: it does not come back) and needed in slot `use[k]`.
    """

    storage: Ints
    ready: Ints
    release: Ints
    reload: Ints
    use: Ints
    copy: Flags


def blank_absences(count: int) -> Absences:
    """Uninitialised arrays for `count` absences."""
    storage, ready, release, reload, use = (np.empty(count, np.int32) for _ in range(5))
    return Absences(storage, ready, release, reload, use, np.empty(count, np.bool_))


def first_absences(absences: Absences, count: int) -> Absences:
    """A copy of the first `count` absences."""
    return Absences(
        absences.storage[:count].copy(), absences.ready[:count].copy(), absences.release[:count].copy(),
        absences.reload[:count].copy(), absences.use[:count].copy(), absences.copy[:count].copy(),
    )  # fmt: skip
