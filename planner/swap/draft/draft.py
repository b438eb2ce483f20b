"""A plan before it has times and addresses: an order, who is away when, and who takes over whose memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from planner.kernels import kernel
from planner.swap.draft.absences import NEVER, Gaps
from planner.swap.problem.problem import Bytes, Flags, Flow, Ints
from planner.swap.problem.uses import Uses


@dataclass(frozen=True, eq=False)
class Draft:
    """What a walk has decided.

    Args:
        order, uses: the op in each slot, and when each storage is touched.
        resident: `[storages]`, held storages on the device when the step starts.
        gaps: who is away when.
        inherits: `[slots]`, the storage whose memory the op in the slot takes over, or -1.
    """

    order: Ints
    uses: Uses
    resident: Flags
    gaps: Gaps
    inherits: Ints


class Stays(NamedTuple):
    """Residencies without offsets: storage `storage[r]` is on the device from slot `start[r]` until slot `stop[r]`.

    `before[r]` is the gap that follows it, or -1.
    """

    storage: Ints
    start: Ints
    stop: Ints
    before: Ints


@kernel
def stays_of(flow: Flow, uses: Uses, resident: Flags, gaps: Gaps, inherits: Ints) -> Stays:
    """The residencies between and around all gaps, those of one storage in the order of time."""
    n, m, count = inherits.shape[0], flow.bytes.shape[0], gaps.storage.shape[0]
    room = m + count
    storage, start = np.empty(room, np.int32), np.empty(room, np.int32)
    stop, before = np.empty(room, np.int32), np.full(room, -1, np.int32)
    opened = np.full(m, -1, np.int32)
    for s in range(m):
        touched = uses.start[s] < uses.start[s + 1]
        if touched and not flow.held[s]:
            opened[s] = uses.slot[uses.start[s]]
        elif resident[s] and flow.bytes[s] > 0 and (touched or flow.kept[s]):
            opened[s] = 0
    r = 0
    for k in range(count):
        s = gaps.storage[k]
        if gaps.release[k] >= 0:
            storage[r], start[r], stop[r], before[r] = s, opened[s], gaps.release[k], k
            r += 1
        opened[s] = gaps.reload[k] if gaps.reload[k] != NEVER else -1
    for s in range(m):
        if opened[s] >= 0:
            storage[r], start[r] = s, opened[s]
            if flow.stateful[s] or flow.kept[s]:
                stop[r] = n
            else:
                last = uses.slot[uses.start[s + 1] - 1]
                stop[r] = last if inherits[last] == s else last + 1
            r += 1
    return Stays(storage[:r], start[:r], stop[:r], before[:r])


@kernel
def bytes_by_slot(flow: Flow, stays: Stays, slots: int) -> Bytes:
    """`[slots]`, aligned bytes on the device in each slot."""
    change = np.zeros(slots + 1, np.int64)
    for r in range(stays.storage.shape[0]):
        change[stays.start[r]] += flow.bytes[stays.storage[r]]
        change[stays.stop[r]] -= flow.bytes[stays.storage[r]]
    return np.cumsum(change)[:slots]


def leave_unused(uses: Uses, gaps: Gaps, resident: Flags) -> Flags:
    """`[storages]`, residents that leave before their first use: they might as well have begun the step on the host."""
    idle = np.zeros(len(resident), np.bool_)
    leaves = resident[gaps.storage] & (gaps.release >= 0)
    who, when = gaps.storage[leaves], gaps.release[leaves]
    idle[who[when <= uses.slot[uses.start[who]]]] = True
    return idle
