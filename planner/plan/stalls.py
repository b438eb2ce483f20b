"""What compute waits for along a timeline, and which copies are to blame for how much of each wait.

An op waits for the copies that `planner.plan.schema` names, and for those ahead of them in their queues. In a measured
step it may wait for fewer, because the executor leaves out the waits that no access to memory needs: a copy is then
waited for in the first slot whose op needs its memory. So only copies that end by the end of a wait count. The copy
that ends last is blamed for the wait from its own start on. The copy that it waited for in turn, the one before it in
its queue or a swap-out that frees its memory, is blamed for the time before, and so on back to where the wait began. So
every moment of a wait is attributed to one copy, and the shares of a wait add up to it.
An op may also wait for collectives that run beside ops; what it waits once the copies are there is no wait for these.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from planner.graph import Graph
from planner.plan.index import PlanIndex
from planner.plan.schema.timeline import Timeline

Direction = Literal["in", "out"]


@dataclass(frozen=True, slots=True)
class WaitShare:
    """The part of a wait that one copy is to blame for.

    Args:
        slot: of the op that waits; the number of ops for the end of the step.
        storage: the storage that is copied.
        direction: `"in"` to the device or `"out"` of it.
        seconds: how long this copy is to blame.
    """

    slot: int
    storage: int
    direction: Direction
    seconds: float


@dataclass(frozen=True, slots=True)
class ComputeWait:
    """Compute waits for copies between two ops.

    Args:
        slot: whose op waits; slot `n` is the end of the step, which waits for all copies.
        start, stop: seconds.
        shares: the copies to blame, the one that ends last first; together they take all of the wait.
    """

    slot: int
    start: float
    stop: float
    shares: tuple[WaitShare, ...]

    @property
    def storage(self) -> int:
        """The storage that is copied last."""
        return self.shares[0].storage

    def cause(self, graph: Graph) -> str:
        """What it waits for last, in words."""
        last = self.shares[0]
        return f"{graph.storages[last.storage].name} to {'leave' if last.direction == 'out' else 'arrive'}"


def compute_waits(index: PlanIndex, timeline: Timeline) -> tuple[ComputeWait, ...]:
    """Where compute waits, by slot; the time between two ops is a wait only if a copy that is due by then ends in it.

    Args:
        index: of the plan, whose queues determine what waits for what.
        timeline: measured or predicted times of a step by that plan.
    """
    return tuple(_Queues(index, timeline).waits(timeline))


class _QueueEntry(NamedTuple):
    start: float
    stop: float
    storage: int
    direction: Direction
    place: int


class _Queues:
    """The copies of a step in the order of their queues, with their times."""

    def __init__(self, index: PlanIndex, timeline: Timeline) -> None:
        self.index = index
        self.outs = [
            _QueueEntry(start, stop, copy.storage, "out", place)
            for place, (copy, (start, stop)) in enumerate(
                zip(index.plan.swap_outs, timeline.swap_out.tolist(), strict=True)
            )
        ]
        self.ins = [
            _QueueEntry(start, stop, copy.storage, "in", place)
            for place, (copy, (start, stop)) in enumerate(
                zip(index.plan.swap_ins, timeline.swap_in.tolist(), strict=True)
            )
        ]

    def waits(self, timeline: Timeline) -> Iterator[ComputeWait]:
        """Every wait, by slot."""
        outs_due, ins_due = self.index.outs_due, self.index.ins_due
        starts = [*timeline.compute[:, 0].tolist(), timeline.seconds]
        stops = [0.0, *timeline.compute[:, 1].tolist()]
        for slot, (begin, end) in enumerate(zip(stops, starts, strict=True)):
            copy = _later(_last(self.outs, outs_due[slot], end), _last(self.ins, ins_due[slot], end))
            if copy is not None and begin < end and copy.stop > begin:
                over = min(end, copy.stop) if self.index.plan.communications else end
                yield ComputeWait(slot, begin, over, tuple(self._shares(copy, slot, begin, over)))

    def _shares(self, copy: _QueueEntry, slot: int, begin: float, end: float) -> Iterator[WaitShare]:
        """The copies to blame for a wait, back from the one that ends last."""
        while end > begin:
            before = self._awaited(copy)
            since = begin if before is None else min(end, max(begin, before.stop))
            if since < end:
                yield WaitShare(slot, copy.storage, copy.direction, end - since)
            if before is None:
                return
            copy, end = before, since

    def _awaited(self, copy: _QueueEntry) -> _QueueEntry | None:
        """The copy that a copy waits for, of several the one that ends last."""
        if copy.direction == "out":
            return _last(self.outs, copy.place, copy.start)
        due = self.index.outs_due[self.index.plan.swap_ins[copy.place].start]
        return _later(_last(self.ins, copy.place, copy.start), _last(self.outs, due, copy.start))


def _last(queue: list[_QueueEntry], due: int, by: float) -> _QueueEntry | None:
    """The last of the first `due` entries of a queue that ends by a time."""
    ended = bisect_right(queue, by, hi=due, key=lambda entry: entry.stop)
    return queue[ended - 1] if ended else None


def _later(one: _QueueEntry | None, other: _QueueEntry | None) -> _QueueEntry | None:
    """The copy that ends last."""
    if one is None or other is None:
        return one or other
    return one if one.stop >= other.stop else other
