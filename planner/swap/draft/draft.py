"""Unplaced plans: an order of the ops, absences of storages and buffer reuse, without times and offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from planner.jit import kernel
from planner.swap.draft.absences import NEVER, Absences
from planner.swap.problem.problem import Bytes, Flags, Ints, ProblemArrays
from planner.swap.problem.uses import Uses


@dataclass(frozen=True, eq=False)
class UnplacedPlan:
    """The decisions of an eviction pass: a plan without offsets.

    Args:
        order, uses: the op in each slot, and when each storage is touched.
        resident: `[storages]`, live-in storages on the device when the step starts.
        absences: when storages are off the device.
        reuses_buffer_of: `[slots]`, the storage whose buffer the op in the slot reuses, or -1.
    """

    order: Ints
    uses: Uses
    resident: Flags
    absences: Absences
    reuses_buffer_of: Ints


class UnplacedResidencies(NamedTuple):
    """Residencies without offsets: storage `storage[r]` is on the device from slot `start[r]` until slot `stop[r]`.

    `next_absence[r]` is the absence that follows the residency, or -1.
    """

    storage: Ints
    start: Ints
    stop: Ints
    next_absence: Ints


@kernel
def unplaced_residencies(
    arrays: ProblemArrays, uses: Uses, resident: Flags, absences: Absences, reuses_buffer_of: Ints
) -> UnplacedResidencies:
    """The residencies between and around all absences; those of one storage are in order of time."""
    n, m, count = reuses_buffer_of.shape[0], arrays.bytes.shape[0], absences.storage.shape[0]
    capacity = m + count
    storage, start = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    stop, next_absence = np.empty(capacity, np.int32), np.full(capacity, -1, np.int32)
    opened = np.full(m, -1, np.int32)
    for s in range(m):
        touched = uses.start[s] < uses.start[s + 1]
        if touched and not arrays.live_in[s]:
            opened[s] = uses.slot[uses.start[s]]
        elif resident[s] and arrays.bytes[s] > 0 and (touched or arrays.live_out[s]):
            opened[s] = 0
    r = 0
    for k in range(count):
        s = absences.storage[k]
        if absences.release[k] >= 0:
            storage[r], start[r], stop[r], next_absence[r] = s, opened[s], absences.release[k], k
            r += 1
        opened[s] = absences.reload[k] if absences.reload[k] != NEVER else -1
    for s in range(m):
        if opened[s] >= 0:
            storage[r], start[r] = s, opened[s]
            if arrays.persistent[s] or arrays.live_out[s]:
                stop[r] = n
            else:
                last = uses.slot[uses.start[s + 1] - 1]
                stop[r] = last if reuses_buffer_of[last] == s else last + 1
            r += 1
    return UnplacedResidencies(storage[:r], start[:r], stop[:r], next_absence[:r])


@kernel
def bytes_by_slot(arrays: ProblemArrays, residencies: UnplacedResidencies, slots: int) -> Bytes:
    """`[slots]`, aligned bytes on the device in each slot."""
    change = np.zeros(slots + 1, np.int64)
    for r in range(residencies.storage.shape[0]):
        change[residencies.start[r]] += arrays.bytes[residencies.storage[r]]
        change[residencies.stop[r]] -= arrays.bytes[residencies.storage[r]]
    return np.cumsum(change)[:slots]


def evicted_before_use(uses: Uses, absences: Absences, resident: Flags) -> Flags:
    """`[storages]`, residents evicted before their first use: they might as well start the step on the host."""
    unused = np.zeros(len(resident), np.bool_)
    leaves = resident[absences.storage] & (absences.release >= 0)
    storages, releases = absences.storage[leaves], absences.release[leaves]
    unused[storages[releases <= uses.slot[uses.start[storages]]]] = True
    return unused
