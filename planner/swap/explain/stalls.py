"""What the compute stream waits for: each wait is split among the copies that cause it.

An op waits for the copies that `planner.plan.swap_plan` names, and for those ahead of them in their queues. The copy
that ends last is blamed for the wait from its own start on. The copy that it waited for in turn, the one before it in
its queue or a swap-out that frees its memory, is blamed for the time before, and so on back to where the wait began. So
every moment of a wait is attributed to one copy, and the shares of a wait add up to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from planner.plan import PlanIndex, Timeline

Direction = Literal["in", "out"]


@dataclass(frozen=True, slots=True)
class Wait:
    """Compute waits for one copy.

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


class _QueueEntry(NamedTuple):
    start: float
    stop: float
    storage: int
    direction: Direction
    place: int


def waits_of(index: PlanIndex, timeline: Timeline) -> tuple[Wait, ...]:
    """Every wait of the compute stream, by slot, each with the copies that cause it.

    Args:
        index: of the plan, whose queues determine what waits for what.
        timeline: measured or predicted times of its step.
    """
    plan, n = index.plan, index.slots
    outs = [
        _QueueEntry(float(span[0]), float(span[1]), copy.storage, "out", place)
        for place, (copy, span) in enumerate(zip(plan.swap_outs, timeline.swap_out, strict=True))
    ]
    ins = [
        _QueueEntry(float(span[0]), float(span[1]), copy.storage, "in", place)
        for place, (copy, span) in enumerate(zip(plan.swap_ins, timeline.swap_in, strict=True))
    ]
    outs_due, ins_due = index.outs_due, index.ins_due
    starts = [*timeline.compute[:, 0].tolist(), timeline.seconds]
    stops = [0.0, *timeline.compute[:, 1].tolist()]
    waits: list[Wait] = []
    for slot in range(n + 1):
        begin, end = stops[slot], starts[slot]
        copy = _later(_entry(outs, outs_due[slot]), _entry(ins, ins_due[slot]))
        while copy is not None and end > begin:
            before = _entry(outs if copy.direction == "out" else ins, copy.place)
            if copy.direction == "in":
                before = _later(before, _entry(outs, outs_due[plan.swap_ins[copy.place].start]))
            since = begin if before is None else max(begin, before.stop)
            if since < end:
                waits.append(Wait(slot, copy.storage, copy.direction, end - since))
            copy, end = before, since
    return tuple(waits)


def _entry(queue: list[_QueueEntry], due: int) -> _QueueEntry | None:
    """The last of the first `due` entries of a queue."""
    return queue[due - 1] if due else None


def _later(one: _QueueEntry | None, other: _QueueEntry | None) -> _QueueEntry | None:
    """The copy that ends last."""
    if one is None or other is None:
        return one or other
    return one if one.stop >= other.stop else other
