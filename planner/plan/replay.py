"""A plan replayed along a timeline: when memory is in use, by kind too, and where compute waits for which copy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from planner.graph import Graph, Kind
from planner.plan.index import Ints, PlanIndex
from planner.plan.timeline import Timeline

Seconds = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ComputeWait:
    """Compute waits for a copy between two ops.

    Args:
        slot: whose op waits; slot `n` is the end of the step, which waits for all copies.
        start, stop: seconds.
        storage: what is copied; of several copies the op waits for, the one that ends last.
        direction: `"out"` to the host, `"in"` to the device; `"end"` where the end of the step waits for copies that
            no slot waits for.
    """

    slot: int
    start: float
    stop: float
    storage: int
    direction: Literal["out", "in", "end"]

    def cause(self, graph: Graph) -> str:
        """What it waits for, in words."""
        if self.direction == "end":
            return "the last copies to end"
        return f"{graph.storages[self.storage].name} to {'leave' if self.direction == 'out' else 'arrive'}"


def residency_seconds(
    index: PlanIndex, compute: Seconds, swap_out: Seconds, swap_in: Seconds
) -> tuple[Seconds, Seconds]:
    """When the memory of each residency is first in use, and when it is free again, both `[residencies]`.

    Memory is in use from the start of the op that makes the storage, of its copy in, or of the step; until the last
    op that needs it and its copy out have ended. Where `index.ends` is false it is not free before the step ends.

    Args:
        index: of the plan.
        compute, swap_out, swap_in: spans as `Timeline` has them.
    """
    # an entry for each op, one for the step's start, then the copies: what has no copy points at the step's start
    starts = np.concatenate([compute[:, 0], [0.0], swap_in[:, 0]])
    n = index.slots
    begin = np.where(index.copy_in >= 0, n + 1 + index.copy_in, np.where(index.from_step_start, n, index.start))
    done, gone = np.append(0.0, compute[:, 1]), np.append(0.0, swap_out[:, 1])
    return starts[begin], np.maximum(done[np.minimum(index.stop, n)], gone[1 + index.copy_out])


def memory_over_time(index: PlanIndex, compute: Seconds, swap_out: Seconds, swap_in: Seconds) -> tuple[Seconds, Ints]:
    """When the bytes on the device change, in seconds from 0, and how many there are from then on."""
    begins, ends = residency_seconds(index, compute, swap_out, swap_in)
    times = np.concatenate([[0.0], begins, ends[index.ends]])
    changes = np.concatenate([[0], index.bytes, -index.bytes[index.ends]])
    order = np.lexsort((changes, times))
    times, levels = times[order], np.cumsum(changes[order])
    last = np.append(times[1:] != times[:-1], True)  # at one moment, what holds after all of its changes
    return times[last], levels[last]


def bytes_by_kind(index: PlanIndex, timeline: Timeline) -> Iterator[tuple[float, dict[str, int]]]:
    """When anything changes, in seconds, and the bytes on the device by kind from then on."""
    begins, ends = residency_seconds(index, timeline.compute, timeline.swap_out, timeline.swap_in)
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


def compute_waits(index: PlanIndex, timeline: Timeline) -> list[ComputeWait]:
    """Where compute waits, by slot; the time between two ops is a wait only if a copy that is due by then ends in it.

    A measured step may wait for a copy in a later slot than the one it is due in: the first whose op needs its memory.

    Args:
        index: of the plan.
        timeline: of a step by that plan.
    """
    n, plan = index.slots, index.plan
    starts = np.append(timeline.compute[:, 0], timeline.seconds)
    stops = np.append(0.0, timeline.compute[:, 1])
    out_stops, in_stops = timeline.swap_out[:, 1].tolist(), timeline.swap_in[:, 1].tolist()
    copies: list[tuple[float, int, int, Literal["out", "in"]]] = [
        *((stop, out.release, out.storage, "out") for stop, out in zip(out_stops, plan.swap_outs, strict=True)),
        *((stop, into.use, into.storage, "in") for stop, into in zip(in_stops, plan.swap_ins, strict=True)),
    ]
    last: dict[int, tuple[float, int, int, Literal["out", "in"]]] = {}
    slots = np.minimum(np.searchsorted(starts, [copy[0] for copy in copies]), n).tolist()
    for slot, copy in zip(slots, copies, strict=True):
        stop, due = copy[:2]
        if stops[slot] < min(stop, starts[slot]) and due <= slot and (slot not in last or stop > last[slot][0]):
            last[slot] = copy
    return [
        ComputeWait(
            slot, float(stops[slot]), float(starts[slot]), storage, "end" if slot == n and due < n else direction
        )
        for slot, (_, due, storage, direction) in sorted(last.items())
    ]
