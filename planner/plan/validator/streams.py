"""The happens-before order of a plan: vector clocks over the three streams, by the waiting rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from planner.plan.swap_plan import SwapPlan

#: How many ops, swap-outs and swap-ins are done.
Clock = tuple[int, int, int]


class Lane(IntEnum):
    """One of the queues that run concurrently, each in order."""

    COMPUTE = 0
    SWAP_OUT = 1
    SWAP_IN = 2


class Entry(NamedTuple):
    """The op in slot `number`, or entry `number` of a copy queue; the op in slot `n` is the end of the step."""

    stream: Lane
    number: int


@dataclass(frozen=True)
class HappensBefore:
    """Which entries are done whenever another begins, whatever the timing.

    Args:
        known: per stream and entry, what is done when it begins; the compute stream has one entry more, the end.
        stuck: the first entry of each stream that can never begin; empty unless the streams deadlock.
    """

    known: tuple[list[Clock], list[Clock], list[Clock]]
    stuck: tuple[Entry, ...]

    def before(self, first: Entry, then: Entry) -> bool:
        """Whether `first` is always done when `then` begins."""
        return self.known[then.stream][then.number][first.stream] > first.number


def happens_before(plan: SwapPlan) -> HappensBefore:
    """Run the queues without times and record what is known to be done when each entry begins.

    Args:
        plan: its slots must be in range.
    """
    slots = len(plan.order)
    outs_by = _needed(slots, ((copy.release, place) for place, copy in enumerate(plan.swap_outs)))
    ins_by = _needed(slots, ((copy.use, place) for place, copy in enumerate(plan.swap_ins)))
    # What each entry waits for in the other streams, as numbers of entries done; then the end of the step.
    waits: tuple[list[Clock], list[Clock], list[Clock]] = (
        [(slot, outs_by[slot], ins_by[slot]) for slot in range(slots)],
        [(copy.ready + 1, place, 0) for place, copy in enumerate(plan.swap_outs)],
        [(copy.start, outs_by[copy.start], place) for place, copy in enumerate(plan.swap_ins)],
    )
    waits[Lane.COMPUTE].append((slots, len(plan.swap_outs), len(plan.swap_ins)))
    known: tuple[list[Clock], list[Clock], list[Clock]] = ([], [], [])
    advanced = True
    while advanced:
        advanced = False
        for stream in Lane:
            while len(known[stream]) < len(waits[stream]):
                need = waits[stream][len(known[stream])]
                if any(need[other] > len(known[other]) for other in Lane):
                    break
                known[stream].append(_join(need, known))
                advanced = True
    stuck = (Entry(stream, len(known[stream])) for stream in Lane if len(known[stream]) < len(waits[stream]))
    return HappensBefore(known, tuple(entry for entry in stuck if entry != (Lane.COMPUTE, slots)))


def _needed(slots: int, entries: Iterable[tuple[int, int]]) -> list[int]:
    """Per slot `0..n`, how many entries of a queue must be done for all that name this slot or an earlier one."""
    needed = [0] * (slots + 1)
    for slot, place in entries:
        needed[slot] = max(needed[slot], place + 1)
    for slot in range(slots):
        needed[slot + 1] = max(needed[slot + 1], needed[slot])
    return needed


def _join(need: Clock, known: tuple[list[Clock], list[Clock], list[Clock]]) -> Clock:
    """What is done once `need` is: that, and what its last entries waited for."""
    ops, outs, ins = need
    for stream in Lane:
        if need[stream] > 0:
            clock = known[stream][need[stream] - 1]
            ops, outs, ins = max(ops, clock[0]), max(outs, clock[1]), max(ins, clock[2])
    return ops, outs, ins
