"""Residencies as boxes to pack."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.swap.draft.draft import UnplacedPlan, UnplacedResidencies
from planner.swap.problem.problem import Bytes, Ints, Problem


class PackingBuffers(NamedTuple):
    """Rectangles of slots x bytes; `box_of[r]` is the box of residency `r`.

    A box with `upper` before `lower` wraps from the end of the step to its beginning.
    """

    lower: Ints
    upper: Ints
    bytes: Bytes
    box_of: Ints


def packing_buffers(problem: Problem, draft: UnplacedPlan, residencies: UnplacedResidencies) -> PackingBuffers:
    """Join residencies that must have the same offset.

    A storage on the device at both ends of the step has the same offset there: its last residency and its first are
    one box.
    """
    arrays, count = problem.arrays, len(residencies.storage)
    first, last = np.full(problem.storages, -1, np.int64), np.full(problem.storages, -1, np.int64)
    last[residencies.storage] = np.arange(count)
    first[residencies.storage[::-1]] = np.arange(count)[::-1]
    box = np.arange(count, dtype=np.int32)
    upper = residencies.stop.copy()
    for slot in np.flatnonzero(draft.reuses_buffer_of >= 0):
        reused_buffer, new_storage = last[draft.reuses_buffer_of[slot]], first[arrays.creates[draft.order[slot]]]
        box[new_storage] = box[reused_buffer]
        upper[box[reused_buffer]] = upper[new_storage]
    both_ends = np.flatnonzero(draft.resident & arrays.persistent & (first >= 0))
    both_ends = both_ends[first[both_ends] != last[both_ends]]
    box[first[both_ends]] = last[both_ends]
    upper[last[both_ends]] = upper[first[both_ends]]
    chosen, box_of = np.unique(box, return_inverse=True)
    return PackingBuffers(
        residencies.start[chosen], upper[chosen], arrays.bytes[residencies.storage[chosen]], box_of.astype(np.int32)
    )
