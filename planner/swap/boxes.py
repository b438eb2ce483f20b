"""Residencies as boxes to be packed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.swap.draft import Draft, Stays
from planner.swap.problem import Bytes, Ints, Problem


class Boxes(NamedTuple):
    """Rectangles of slots x bytes; `of[r]` is the box of residency `r`, `fixed` an offset given in advance or -1."""

    lower: Ints
    upper: Ints
    bytes: Bytes
    fixed: Bytes
    of: Ints


def boxes_of(problem: Problem, draft: Draft, stays: Stays) -> Boxes:
    """Join residencies that take over each other's memory, and give what stays over the step's end its home.

    A storage on the device at both ends of the step has the same offset there. These homes lie at the bottom, what
    is never away lowest.
    """
    flow, count = problem.flow, len(stays.storage)
    first, last = np.full(problem.storages, -1, np.int64), np.full(problem.storages, -1, np.int64)
    last[stays.storage] = np.arange(count)
    first[stays.storage[::-1]] = np.arange(count)[::-1]
    box = np.arange(count, dtype=np.int32)
    upper = stays.stop.copy()
    for slot in np.flatnonzero(draft.inherits >= 0):
        donor, heir = last[draft.inherits[slot]], first[flow.creates[draft.order[slot]]]
        box[heir] = box[donor]
        upper[box[donor]] = upper[heir]
    chosen, of = np.unique(box, return_inverse=True)
    fixed = np.full(len(chosen), -1, np.int64)
    homed = np.flatnonzero(draft.resident & flow.stateful & (first >= 0))
    leaves, returns = stays.stop[first[homed]], stays.start[last[homed]]
    away = np.where(first[homed] == last[homed], 0, returns - leaves)
    base = 0
    for storage in homed[np.argsort(away, kind="stable")]:
        fixed[of[first[storage]]] = fixed[of[last[storage]]] = base
        base += int(flow.bytes[storage])
    sizes = flow.bytes[stays.storage[chosen]]
    return Boxes(stays.start[chosen], upper[chosen], sizes, fixed, of.astype(np.int32))
