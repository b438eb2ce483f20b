"""Residencies as boxes to pack."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.swap.draft.draft import UnplacedPlan, UnplacedResidencies
from planner.swap.problem.problem import Bytes, Ints, Problem


class PackingBuffers(NamedTuple):
    """Rectangles of slots x bytes; `of[r]` is the box of residency `r`.

    A box with `upper` before `lower` wraps from the end of the step to its beginning.
    """

    lower: Ints
    upper: Ints
    bytes: Bytes
    of: Ints


def packing_buffers(problem: Problem, draft: UnplacedPlan, stays: UnplacedResidencies) -> PackingBuffers:
    """Join residencies that must have the same offset.

    A storage on the device at both ends of the step has the same offset there: its last residency and its first are
    one box.
    """
    flow, count = problem.flow, len(stays.storage)
    first, last = np.full(problem.storages, -1, np.int64), np.full(problem.storages, -1, np.int64)
    last[stays.storage] = np.arange(count)
    first[stays.storage[::-1]] = np.arange(count)[::-1]
    box = np.arange(count, dtype=np.int32)
    upper = stays.stop.copy()
    for slot in np.flatnonzero(draft.reuses_buffer_of >= 0):
        reused_buffer, heir = last[draft.reuses_buffer_of[slot]], first[flow.creates[draft.order[slot]]]
        box[heir] = box[reused_buffer]
        upper[box[reused_buffer]] = upper[heir]
    homed = np.flatnonzero(draft.resident & flow.persistent & (first >= 0))
    homed = homed[first[homed] != last[homed]]
    box[first[homed]] = last[homed]
    upper[last[homed]] = upper[first[homed]]
    chosen, of = np.unique(box, return_inverse=True)
    return PackingBuffers(stays.start[chosen], upper[chosen], flow.bytes[stays.storage[chosen]], of.astype(np.int32))
