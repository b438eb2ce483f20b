"""A plan replayed along a timeline: when the memory of each residency is in use, and how much of each kind."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.graph import Kind
from planner.plan.index import PlanIndex
from planner.plan.schema.lanes import COMMUNICATION, COMPUTE, SWAP_IN, SWAP_OUT
from planner.plan.schema.timeline import MemorySamples, Seconds, Spans, Timeline


def residency_seconds(index: PlanIndex, spans: Spans) -> tuple[Seconds, Seconds]:
    """When the memory of each residency is first in use, and when it is free again, both `[residencies]`.

    Memory is in use from the start of the op that makes the storage, of its copy in, or of the step; until the last
    op that needs it, on whichever lane, and its copy out have ended. Where `index.ends` is false it is not free before
    the step ends.

    Args:
        index: of the plan.
        spans: by lane, as `Timeline` has them.
    """
    compute, swap_out, swap_in = spans[COMPUTE], spans[SWAP_OUT], spans[SWAP_IN]
    # an entry for each op, one for the step's start, then the copies: what has no copy points at the step's start
    starts = np.concatenate([compute[:, 0], [0.0], swap_in[:, 0]])
    n = index.slots
    begin = np.where(index.copy_in >= 0, n + 1 + index.copy_in, np.where(index.from_step_start, n, index.start))
    done, gone = np.append(0.0, compute[:, 1]), np.append(0.0, swap_out[:, 1])
    free = np.maximum(done[np.minimum(index.stop, n)], gone[1 + index.copy_out])
    if COMMUNICATION in spans:
        free = np.maximum(free, np.append(0.0, spans[COMMUNICATION][:, 1])[1 + index.communication])
    return starts[begin], free


def memory_over_time(index: PlanIndex, spans: Spans) -> MemorySamples:
    """When the bytes on the device change, in seconds from 0, and how many there are from then on."""
    begins, ends = residency_seconds(index, spans)
    times = np.concatenate([[0.0], begins, ends[index.ends]])
    changes = np.concatenate([[0], index.bytes, -index.bytes[index.ends]])
    order = np.lexsort((changes, times))
    times, levels = times[order], np.cumsum(changes[order])
    last = np.append(times[1:] != times[:-1], True)  # at one moment, what holds after all of its changes
    return MemorySamples(times[last], levels[last])


def bytes_by_kind(index: PlanIndex, timeline: Timeline) -> Iterator[tuple[float, dict[str, int]]]:
    """When anything changes, in seconds, and the bytes on the device by kind from then on."""
    begins, ends = residency_seconds(index, timeline.spans)
    kinds = [index.graph.storages[storage].kind for storage in index.storage.tolist()]
    changes: dict[float, dict[Kind, int]] = {0.0: {}}
    for moments, sign, some in ((begins, 1, np.ones(len(kinds), np.bool_)), (ends, -1, index.ends)):
        for number in np.flatnonzero(some).tolist():
            at = changes.setdefault(float(moments[number]), {})
            at[kinds[number]] = at.get(kinds[number], 0) + sign * int(index.bytes[number])
    there = dict.fromkeys((kind for kind in Kind if any(kind in each for each in changes.values())), 0)
    for seconds in sorted(changes):
        for kind, size in changes[seconds].items():
            there[kind] += size
        yield seconds, {kind.value: size for kind, size in there.items()}
