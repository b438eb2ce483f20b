"""The happens-before order of a plan: vector clocks over its lanes, by the waiting rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from planner.plan.schema.lanes import COMPUTE, SWAP_IN, SWAP_OUT, Lane
from planner.plan.schema.swap_plan import SwapPlan

#: The lanes whose waiting rules are known here; a plan with another is not proven.
LANES = (COMPUTE, SWAP_OUT, SWAP_IN)
#: By position in `LANES`, how many entries are done.
Clock = tuple[int, ...]

_PLACE = {lane: place for place, lane in enumerate(LANES)}


class Entry(NamedTuple):
    """The op in slot `number`, or entry `number` of a copy queue; the op in slot `n` is the end of the step."""

    lane: Lane
    number: int


@dataclass(frozen=True)
class HappensBefore:
    """Which entries are done whenever another begins, whatever the timing.

    Args:
        known: by lane and entry, what is done when it begins; the compute lane has one entry more, the end.
        stuck: the first entry of each lane that can never begin; empty unless the lanes deadlock.
    """

    known: Mapping[Lane, list[Clock]]
    stuck: tuple[Entry, ...]

    def before(self, first: Entry, then: Entry) -> bool:
        """Whether `first` is always done when `then` begins."""
        return self.known[then.lane][then.number][_PLACE[first.lane]] > first.number


def happens_before(plan: SwapPlan) -> HappensBefore:
    """Run the queues without times and record what is known to be done when each entry begins.

    Args:
        plan: its slots must be in range.
    """
    waits = _waits(plan)
    known: dict[Lane, list[Clock]] = {lane: [] for lane in LANES}
    in_order = [known[lane] for lane in LANES]
    advanced = True
    while advanced:
        advanced = False
        for lane in LANES:
            mine, due = known[lane], waits[lane]
            while len(mine) < len(due):
                need = due[len(mine)]
                if any(count > len(done) for count, done in zip(need, in_order, strict=True)):
                    break
                mine.append(_join(need, in_order))
                advanced = True
    stuck = (Entry(lane, len(known[lane])) for lane in LANES if len(known[lane]) < len(waits[lane]))
    end = Entry(COMPUTE, len(plan.order))
    return HappensBefore(known, tuple(entry for entry in stuck if entry != end))


def _waits(plan: SwapPlan) -> dict[Lane, list[Clock]]:
    """By lane, what each entry waits for, as numbers of entries done; the last of the compute lane is the end."""
    slots = len(plan.order)
    outs_by = _needed(slots, ((copy.release, place) for place, copy in enumerate(plan.swap_outs)))
    ins_by = _needed(slots, ((copy.use, place) for place, copy in enumerate(plan.swap_ins)))
    return {
        COMPUTE: [
            *((slot, outs_by[slot], ins_by[slot]) for slot in range(slots)),
            (slots, len(plan.swap_outs), len(plan.swap_ins)),
        ],
        SWAP_OUT: [(copy.ready + 1, place, 0) for place, copy in enumerate(plan.swap_outs)],
        SWAP_IN: [(copy.start, outs_by[copy.start], place) for place, copy in enumerate(plan.swap_ins)],
    }


def _needed(slots: int, entries: Iterable[tuple[int, int]]) -> list[int]:
    """Per slot `0..n`, how many entries of a queue must be done for all that name this slot or an earlier one."""
    needed = [0] * (slots + 1)
    for slot, place in entries:
        needed[slot] = max(needed[slot], place + 1)
    for slot in range(slots):
        needed[slot + 1] = max(needed[slot + 1], needed[slot])
    return needed


def _join(need: Clock, known: list[list[Clock]]) -> Clock:
    """What is done once `need` is: that, and what its last entries waited for."""
    clocks = [done[count - 1] for count, done in zip(need, known, strict=True) if count > 0]
    return tuple(map(max, need, *clocks)) if clocks else need
