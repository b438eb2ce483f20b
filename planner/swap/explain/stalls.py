"""What the compute stream waits for, second by second: each wait is split among the copies that it was due to.

An op waits for the copies that `planner.memory.plan` names, and what lies ahead of them in their queues. The one that
ends last is what the op starts after; it is blamed for the wait from its own start on. What it started after itself,
the copy before it in its queue or a swap-out that frees its memory, is blamed for what lies before, and so on back to
where the wait began. So every moment of every wait is one copy's, and the shares of a wait add up to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, NamedTuple

from planner.plan import SwapPlan, Timeline

Direction = Literal["in", "out"]


@dataclass(frozen=True, slots=True)
class Wait:
    """Compute waits for one copy.

    Args:
        slot: whose op waits; the number of ops where it is the end of the step.
        storage: what is copied.
        direction: `"in"` to the device or `"out"` of it.
        seconds: how long this copy is to blame.
    """

    slot: int
    storage: int
    direction: Direction
    seconds: float


class _Copy(NamedTuple):
    start: float
    stop: float
    storage: int
    direction: Direction
    place: int


def waits_of(plan: SwapPlan, timeline: Timeline) -> tuple[Wait, ...]:
    """Every wait of the compute stream, by slot, each with the copies it is due to.

    Args:
        plan: whose queues say what waits for what.
        timeline: when it all happened or is foreseen to happen.
    """
    n = len(plan.order)
    outs = [
        _Copy(float(span[0]), float(span[1]), copy.storage, "out", place)
        for place, (copy, span) in enumerate(zip(plan.swap_outs, timeline.swap_out, strict=True))
    ]
    ins = [
        _Copy(float(span[0]), float(span[1]), copy.storage, "in", place)
        for place, (copy, span) in enumerate(zip(plan.swap_ins, timeline.swap_in, strict=True))
    ]
    # queues work in order, so a slot waits for a first part of each: all up to the last entry that is due by then
    outs_due = _due([copy.release for copy in plan.swap_outs], n)
    ins_due = _due([copy.use for copy in plan.swap_ins], n)
    outs_due[n], ins_due[n] = len(outs), len(ins)
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


def _due(slots: list[int], n: int) -> list[int]:
    """`[slots + 1]`, how many entries of a queue must be done before each slot."""
    furthest = [0] * (n + 1)
    for place, slot in enumerate(slots):
        furthest[slot] = place + 1
    return list(accumulate(furthest, max))


def _entry(queue: list[_Copy], due: int) -> _Copy | None:
    """The last of the first `due` entries of a queue."""
    return queue[due - 1] if due else None


def _later(one: _Copy | None, other: _Copy | None) -> _Copy | None:
    """The copy that ends last."""
    if one is None or other is None:
        return one or other
    return one if one.stop >= other.stop else other
