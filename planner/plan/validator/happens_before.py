"""The happens-before order of a plan: vector clocks over its lanes, by the waiting rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from planner.plan.schema.lanes import COMMUNICATION, COMPUTE, SWAP_IN, SWAP_OUT, Lane
from planner.plan.schema.swap_plan import SwapPlan

#: The lanes that every plan has, and those whose waiting rules are known here; a plan with another is not proven.
LANES = (COMPUTE, SWAP_OUT, SWAP_IN)
KNOWN_LANES = (*LANES, COMMUNICATION)
#: By position in `KNOWN_LANES`, how many entries are done; of the lanes that the plan has.
Clock = tuple[int, ...]

_PLACE = {lane: place for place, lane in enumerate(KNOWN_LANES)}


class Entry(NamedTuple):
    """The op in slot `number`, or entry `number` of another queue; the op in slot `n` is the end of the step."""

    lane: Lane
    number: int


@dataclass(frozen=True)
class HappensBefore:
    """Which entries are done whenever another begins, whatever the timing.

    Args:
        known: by lane and entry, what is done when it begins; the compute lane has one entry more, the end.
        stuck: the first entry of each lane that can never begin; empty unless the lanes deadlock.
        handed_over: by slot, the entry of the communication lane that runs its op.
    """

    known: Mapping[Lane, list[Clock]]
    stuck: tuple[Entry, ...]
    handed_over: Mapping[int, int] = field(default_factory=dict)

    def op(self, slot: int) -> Entry:
        """The entry in which the op of a slot runs."""
        entry = self.handed_over.get(slot, -1)
        return Entry(COMPUTE, slot) if entry < 0 else Entry(COMMUNICATION, entry)

    def before(self, first: Entry, then: Entry) -> bool:
        """Whether `first` is always done when `then` begins."""
        return self.known[then.lane][then.number][_PLACE[first.lane]] > first.number


def happens_before(plan: SwapPlan) -> HappensBefore:
    """Run the queues without times and record what is known to be done when each entry begins.

    Args:
        plan: its slots must be in range.
    """
    lanes = KNOWN_LANES if plan.communications else LANES
    waits = _waits(plan)
    known: dict[Lane, list[Clock]] = {lane: [] for lane in lanes}
    in_order = [known[lane] for lane in lanes]
    advanced = True
    while advanced:
        advanced = False
        for lane in lanes:
            mine, due = known[lane], waits[lane]
            while len(mine) < len(due):
                need = due[len(mine)]
                if any(count > len(done) for count, done in zip(need, in_order, strict=True)):
                    break
                mine.append(_join(need, in_order))
                advanced = True
    stuck = (Entry(lane, len(known[lane])) for lane in lanes if len(known[lane]) < len(waits[lane]))
    end = Entry(COMPUTE, len(plan.order))
    handed_over = {beside.start: number for number, beside in enumerate(plan.communications)}
    return HappensBefore(known, tuple(entry for entry in stuck if entry != end), handed_over)


def _waits(plan: SwapPlan) -> dict[Lane, list[Clock]]:
    """By lane, what each entry waits for, as numbers of entries done; the last of the compute lane is the end."""
    slots = len(plan.order)
    outs_by = _needed(slots, ((copy.release, place) for place, copy in enumerate(plan.swap_outs)))
    ins_by = _needed(slots, ((copy.use, place) for place, copy in enumerate(plan.swap_ins)))
    waits: dict[Lane, list[Clock]] = {
        COMPUTE: [
            *((slot, outs_by[slot], ins_by[slot]) for slot in range(slots)),
            (slots, len(plan.swap_outs), len(plan.swap_ins)),
        ],
        SWAP_OUT: [(copy.ready + 1, place, 0) for place, copy in enumerate(plan.swap_outs)],
        SWAP_IN: [(copy.start, outs_by[copy.start], place) for place, copy in enumerate(plan.swap_ins)],
    }
    if not plan.communications:
        return waits
    beside = plan.communications
    done_by = _needed(slots, ((each.use, place) for place, each in enumerate(beside)))
    done_by[slots] = len(beside)
    return {
        COMPUTE: [(*clock, done_by[slot]) for slot, clock in enumerate(waits[COMPUTE])],
        SWAP_OUT: [(*clock, 0) for clock in waits[SWAP_OUT]],
        SWAP_IN: [(*clock, done_by[clock[0]]) for clock in waits[SWAP_IN]],
        COMMUNICATION: [(each.start + 1, 0, 0, place) for place, each in enumerate(beside)],
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
