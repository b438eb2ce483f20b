"""When each storage is on the device, how it gets there, and which ops read or write it there."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise

from planner.graph import Graph, Op
from planner.plan.schema.swap_plan import SwapPlan


class Begin(Enum):
    """How the value of a residency gets onto the device."""

    AT_START = "there when the step starts"
    MADE = "made by an op"
    SWAPPED_IN = "copied from the host"


@dataclass(slots=True)
class Stay:
    """A residency, and what happens in it.

    Args:
        storage, start, stop, offset: as in the plan.
        begin: how it begins.
        swap_in, swap_out: positions in the queues of the copies that begin and end it, or -1.
        uses: slots whose ops read or write it, ascending; the last is `stop` if that op reuses its buffer.
        last_write: the last slot whose op creates or writes it here, or -1.
    """

    storage: int
    start: int
    stop: int
    offset: int
    begin: Begin = Begin.AT_START
    swap_in: int = -1
    swap_out: int = -1
    uses: list[int] = field(default_factory=list)
    last_write: int = -1


#: The residencies of each storage, in order of time.
Stays = dict[int, list[Stay]]


def find_stays(plan: SwapPlan, graph: Graph) -> tuple[Stays, list[str]]:
    """Follow every storage through the step; also report storages used while absent or present without a cause."""
    stays: Stays = defaultdict(list)
    for residency in sorted(plan.residencies, key=lambda residency: residency.start):
        stays[residency.storage].append(Stay(residency.storage, residency.start, residency.stop, residency.offset))
    stays = dict(stays)
    makers = _makers(graph)
    problems = [*_repeats(graph, stays), *_copies(plan, graph, stays), *_begins(plan, graph, stays, makers)]
    last_uses = _last_uses(plan, graph, makers)
    for slot, identity in enumerate(plan.order):
        op = graph.ops[identity]
        touched = dict.fromkeys((*graph.reads[identity], *graph.writes[identity]))
        for storage in touched if op.workspace < 0 else (*touched, op.workspace):
            stay = _stay_at(stays, storage, slot)
            if stay is None:
                stay = _taken_over(graph, stays, op, slot, storage, last_uses)
            if stay is not None:
                stay.uses.append(slot)
                if storage == op.workspace or storage in graph.writes[identity]:
                    stay.last_write = slot
            elif graph.storages[storage].bytes > 0:
                name = graph.storages[storage].name
                problems.append(f"op {op.name} in slot {slot} needs {name}, which is not on the device then")
    return stays, problems


def _repeats(graph: Graph, stays: Stays) -> Iterator[str]:
    for storage, visits in stays.items():
        for earlier, later in pairwise(visits):
            if later.start < earlier.stop:
                yield f"{graph.storages[storage].name} has two residencies at once from slot {later.start}"


def _copies(plan: SwapPlan, graph: Graph, stays: Stays) -> Iterator[str]:
    """Match each copy with the one residency that it begins or ends."""
    starts = {(stay.storage, stay.start): stay for visits in stays.values() for stay in visits}
    stops = {(stay.storage, stay.stop): stay for visits in stays.values() for stay in visits}
    for place, copy in enumerate(plan.swap_ins):
        name = graph.storages[copy.storage].name
        stay = starts.get((copy.storage, copy.start))
        if stay is None or stay.swap_in >= 0:
            yield f"swap-in {place} of {name} does not begin a residency of its own at slot {copy.start}"
        else:
            stay.swap_in = place
            if copy.use > stay.stop:
                yield f"swap-in {place} of {name} is for use at slot {copy.use}, when its residency is over"
    for place, out in enumerate(plan.swap_outs):
        name = graph.storages[out.storage].name
        stay = stops.get((out.storage, out.release))
        if stay is None or stay.swap_out >= 0:
            yield f"swap-out {place} of {name} does not end a residency of its own at slot {out.release}"
        else:
            stay.swap_out = place


def _makers(graph: Graph) -> dict[int, int]:
    """By storage, the op that makes the first value in it; each of its instances makes that value."""
    makers: dict[int, int] = {}
    for op in graph.ops:
        for storage in (*graph.writes[op.id], op.workspace):
            makers.setdefault(storage, op.id)
    return makers


def _last_uses(plan: SwapPlan, graph: Graph, makers: dict[int, int]) -> set[tuple[int, int]]:
    """Storages and slots after whose op the value is not used again: nothing touches it, or its maker does next."""
    found: dict[int, int] = {}
    last: set[tuple[int, int]] = set()
    for slot, op in enumerate(plan.order):
        for storage in dict.fromkeys((*graph.reads[op], *graph.writes[op])):
            if makers.get(storage) == op and storage in found:
                last.add((storage, found[storage]))
            found[storage] = slot
    return last | set(found.items())


def _begins(plan: SwapPlan, graph: Graph, stays: Stays, makers: dict[int, int]) -> Iterator[str]:
    for storage, visits in stays.items():
        held = graph.storages[storage].live_in
        for stay in visits:
            if stay.swap_in >= 0:
                stay.begin = Begin.SWAPPED_IN
            elif not held and makers.get(storage) == plan.order[stay.start]:
                stay.begin = Begin.MADE
            elif not held or stay.start > 0:
                name = graph.storages[storage].name
                yield f"{name} is on the device from slot {stay.start}, where nothing makes it or copies it in"


def _stay_at(stays: Stays, storage: int, slot: int) -> Stay | None:
    visits = stays.get(storage, [])
    place = bisect_right(visits, slot, key=lambda stay: stay.start) - 1
    return visits[place] if place >= 0 and slot < visits[place].stop else None


def _taken_over(
    graph: Graph, stays: Stays, op: Op, slot: int, storage: int, last_uses: set[tuple[int, int]]
) -> Stay | None:
    """The residency of an input that ends in this slot because the op's first output validly reuses its buffer."""
    readings = [tensor for tensor in op.inputs if graph.tensors[tensor].storage == storage]
    if not readings or not op.outputs or any(tensor not in op.overwrites for tensor in readings):
        return None
    reused_buffer = next((stay for stay in stays.get(storage, []) if stay.stop == slot), None)
    created = graph.tensors[op.outputs[0]].storage
    heir = next((stay for stay in stays.get(created, []) if stay.start == slot and stay.begin is Begin.MADE), None)
    if reused_buffer is None or heir is None or reused_buffer.offset != heir.offset or reused_buffer.swap_out >= 0:
        return None
    facts = graph.storages[storage]
    free = not facts.live_in and storage not in graph.output_storages and (storage, slot) in last_uses
    return reused_buffer if free and facts.bytes == graph.storages[created].bytes else None
