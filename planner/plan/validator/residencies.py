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
from planner.plan.validator.op_accesses import SlotAccesses


class Begin(Enum):
    """How the value of a residency gets onto the device."""

    AT_START = "there when the step starts"
    MADE = "made by an op"
    SWAPPED_IN = "copied from the host"


@dataclass(slots=True)
class DeviceResidency:
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
DeviceResidencies = dict[int, list[DeviceResidency]]


def find_residencies(plan: SwapPlan, graph: Graph, accesses: SlotAccesses) -> tuple[DeviceResidencies, list[str]]:
    """Follow every storage through the step; also report storages used while absent or present without a cause."""
    residencies: DeviceResidencies = defaultdict(list)
    for planned in sorted(plan.residencies, key=lambda planned: planned.start):
        residencies[planned.storage].append(
            DeviceResidency(planned.storage, planned.start, planned.stop, planned.offset)
        )
    residencies = dict(residencies)
    makers = _makers(graph)
    problems = [
        *_repeats(graph, residencies),
        *_copies(plan, graph, residencies),
        *_begins(plan, graph, residencies, makers, accesses),
    ]
    last_uses = _last_uses(plan, accesses, makers)
    for slot, identity in enumerate(plan.order):
        op = graph.ops[identity]
        touched = accesses.touched(slot)
        for storage in touched if op.workspace < 0 else (*touched, op.workspace):
            residency = _residency_at(residencies, storage, slot)
            if residency is None:
                residency = _taken_over(graph, residencies, op, slot, storage, last_uses)
            if residency is not None:
                residency.uses.append(slot)
                if storage == op.workspace or storage in accesses.writes[slot]:
                    residency.last_write = slot
            elif graph.storages[storage].bytes > 0:
                name = graph.storages[storage].name
                problems.append(f"op {op.name} in slot {slot} needs {name}, which is not on the device then")
    return residencies, problems


def _repeats(graph: Graph, residencies: DeviceResidencies) -> Iterator[str]:
    for storage, visits in residencies.items():
        for earlier, later in pairwise(visits):
            if later.start < earlier.stop:
                yield f"{graph.storages[storage].name} has two residencies at once from slot {later.start}"


def _copies(plan: SwapPlan, graph: Graph, residencies: DeviceResidencies) -> Iterator[str]:
    """Match each copy with the one residency that it begins or ends."""
    starts = {
        (residency.storage, residency.start): residency for visits in residencies.values() for residency in visits
    }
    stops = {(residency.storage, residency.stop): residency for visits in residencies.values() for residency in visits}
    for place, copy in enumerate(plan.swap_ins):
        name = graph.storages[copy.storage].name
        residency = starts.get((copy.storage, copy.start))
        if residency is None or residency.swap_in >= 0:
            yield f"swap-in {place} of {name} does not begin a residency of its own at slot {copy.start}"
        else:
            residency.swap_in = place
            if copy.use > residency.stop:
                yield f"swap-in {place} of {name} is for use at slot {copy.use}, when its residency is over"
    for place, out in enumerate(plan.swap_outs):
        name = graph.storages[out.storage].name
        residency = stops.get((out.storage, out.release))
        if residency is None or residency.swap_out >= 0:
            yield f"swap-out {place} of {name} does not end a residency of its own at slot {out.release}"
        else:
            residency.swap_out = place


def _makers(graph: Graph) -> dict[int, int]:
    """By storage, the op that makes the first value in it; each of its instances makes that value."""
    makers: dict[int, int] = {}
    for op in graph.ops:
        for storage in (*graph.writes[op.id], op.workspace):
            makers.setdefault(storage, op.id)
    return makers


def _last_uses(plan: SwapPlan, accesses: SlotAccesses, makers: dict[int, int]) -> set[tuple[int, int]]:
    """Storages and slots after whose op the value is not used again: nothing touches it, or its maker does next."""
    found: dict[int, int] = {}
    last: set[tuple[int, int]] = set()
    for slot, op in enumerate(plan.order):
        for storage in accesses.touched(slot):
            if makers.get(storage) == op and storage in found:
                last.add((storage, found[storage]))
            found[storage] = slot
    return last | set(found.items())


def _begins(
    plan: SwapPlan, graph: Graph, residencies: DeviceResidencies, makers: dict[int, int], accesses: SlotAccesses
) -> Iterator[str]:
    for storage, visits in residencies.items():
        held = graph.storages[storage].live_in
        for residency in visits:
            if residency.swap_in >= 0:
                residency.begin = Begin.SWAPPED_IN
            elif not held and _makes(plan, graph, makers, accesses, storage, residency.start):
                residency.begin = Begin.MADE
            elif not held or residency.start > 0:
                name = graph.storages[storage].name
                yield f"{name} is on the device from slot {residency.start}, where nothing makes it or copies it in"


def _makes(
    plan: SwapPlan, graph: Graph, makers: dict[int, int], accesses: SlotAccesses, storage: int, slot: int
) -> bool:
    """Whether the op of a slot makes the first value in a storage there."""
    op = plan.order[slot]
    return makers.get(storage) == op and (storage == graph.ops[op].workspace or storage in accesses.writes[slot])


def _residency_at(residencies: DeviceResidencies, storage: int, slot: int) -> DeviceResidency | None:
    visits = residencies.get(storage, [])
    place = bisect_right(visits, slot, key=lambda residency: residency.start) - 1
    return visits[place] if place >= 0 and slot < visits[place].stop else None


def _taken_over(
    graph: Graph,
    residencies: DeviceResidencies,
    op: Op,
    slot: int,
    storage: int,
    last_uses: set[tuple[int, int]],
) -> DeviceResidency | None:
    """The residency of an input that ends in this slot because the op's first output validly reuses its buffer."""
    readings = [tensor for tensor in op.inputs if graph.tensors[tensor].storage == storage]
    if not readings or not op.outputs or any(tensor not in op.overwrites for tensor in readings):
        return None
    reused_buffer = next(
        (residency for residency in residencies.get(storage, []) if residency.stop == slot),
        None,
    )
    created = graph.tensors[op.outputs[0]].storage
    new_storage = next(
        (
            residency
            for residency in residencies.get(created, [])
            if residency.start == slot and residency.begin is Begin.MADE
        ),
        None,
    )
    if (
        reused_buffer is None
        or new_storage is None
        or reused_buffer.offset != new_storage.offset
        or reused_buffer.swap_out >= 0
    ):
        return None
    storage_info = graph.storages[storage]
    free = not storage_info.live_in and storage not in graph.output_storages and (storage, slot) in last_uses
    return reused_buffer if free and storage_info.bytes == graph.storages[created].bytes else None
