"""Where in a step one plan has more on the device than another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.graph import Phase
from planner.plan.index import PlanIndex
from planner.plan.schema.timeline import MemorySamples, Seconds

#: Differences below this share of the higher peak do not count.
_SEEN = 0.01


@dataclass(frozen=True, slots=True)
class MemorySpan:
    """A time in which one plan has more on the device throughout.

    Args:
        start, stop: seconds from the start of the step.
        bytes: the largest difference in it, of the second plan from the first; negative where the first has more.
        phase, op: of the op that the first plan runs, or ran last, at the largest difference.
    """

    start: float
    stop: float
    bytes: int
    phase: Phase
    op: str


def unlike_memory(index: PlanIndex, first: MemorySamples, second: MemorySamples, end: float) -> tuple[MemorySpan, ...]:
    """The times in which memory differs by at least a hundredth of the higher peak.

    Args:
        index: of the first plan.
        first, second: bytes over time of both plans.
        end: until when to look, in seconds.
    """
    least = _SEEN * max(first.bytes.max(initial=0), second.bytes.max(initial=0))
    moments = np.unique(np.concatenate([first.seconds, second.seconds]))
    moments = moments[moments < end]
    more = _at(second, moments) - _at(first, moments)
    side = np.sign(more) * (np.abs(more) >= least)
    bounds = np.flatnonzero(np.diff(side, prepend=0, append=0))
    found, ends = [], np.append(moments, end)
    starts = index.plan.predicted.compute[:, 0]
    for begin, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if side[begin]:
            most = begin + int(np.abs(more[begin:stop]).argmax())
            slot = max(int(np.searchsorted(starts, moments[most], side="right")) - 1, 0)
            op = index.graph.ops[index.plan.order[slot]]
            found.append(MemorySpan(float(ends[begin]), float(ends[stop]), int(more[most]), op.phase, op.name))
    return tuple(found)


def _at(samples: MemorySamples, moments: Seconds) -> NDArray[np.int64]:
    return samples.bytes[np.searchsorted(samples.seconds, moments, side="right") - 1]
