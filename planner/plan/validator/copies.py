"""Every copy carries the value it should, and the step ends in the state in which the next one starts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from planner.graph import Graph
from planner.plan.schema.lanes import SWAP_IN, SWAP_OUT
from planner.plan.schema.swap_plan import HostResidency, SwapPlan
from planner.plan.validator.happens_before import Entry, HappensBefore
from planner.plan.validator.order import Values
from planner.plan.validator.residencies import Begin, DeviceResidencies, DeviceResidency


@dataclass(slots=True, eq=False)
class HostPlace:
    """A residency in the host slab, and the copies into it and out of it."""

    residency: HostResidency
    copies: list[Entry] = field(default_factory=list)


#: The host residencies of each storage, in order of time.
HostPlaces = dict[int, list[HostPlace]]


def check_copies(
    plan: SwapPlan, graph: Graph, residencies: DeviceResidencies, values: Values, ordered: HappensBefore
) -> tuple[HostPlaces, list[str]]:
    """Follow the value of every storage between device and host; returns the host places and the problems."""
    places: HostPlaces = defaultdict(list)
    for residency in sorted(plan.host_residencies, key=lambda residency: residency.start):
        places[residency.storage].append(HostPlace(residency))
    places = dict(places)
    problems = [*_place_spans(plan, graph, places)]
    updated = {storage for written in graph.writes for storage in written}
    for storage in graph.storages:
        flow = _CopyFlow(plan, graph, places, values, ordered, storage.id, storage.id in updated)
        problems += flow.follow(residencies.get(storage.id, []))
    return places, problems


def _place_spans(plan: SwapPlan, graph: Graph, places: HostPlaces) -> Iterator[str]:
    for storage, spans in places.items():
        stored = graph.storages[storage]
        if stored.live_in and any((p.residency.start, p.residency.stop) != (-1, len(plan.order)) for p in spans):
            yield f"{stored.name} outlives the step, but its place in the host slab does not last from -1 to the end"
        for earlier, later in pairwise(spans):
            if later.residency.start < earlier.residency.stop:
                yield f"{stored.name} has two places in the host slab at once from slot {later.residency.start}"


class _CopyFlow:
    """One storage's value as it moves to the host and back."""

    def __init__(
        self, plan: SwapPlan, graph: Graph, places: HostPlaces, values: Values, ordered: HappensBefore, storage: int,
        updated: bool,
    ) -> None:  # fmt: skip
        self.plan, self.graph, self.values, self.ordered = plan, graph, values, ordered
        self.storage = graph.storages[storage]
        self.places = places.get(storage, [])
        self.updated = updated
        self.value = 0  # the number of the value on the device, and where it is valid on the host
        self.valid: HostPlace | None = None
        self.last_copy: Entry | None = None

    def follow(self, visits: list[DeviceResidency]) -> Iterator[str]:
        """Go through the residencies, tracking which host copy is valid, then check the end of the step."""
        is_first = bool(visits) and visits[0].begin is Begin.AT_START
        if self.storage.live_in and self.places and not (is_first and self.updated):
            self.valid = self.places[0]
        for residency in visits:
            if residency.swap_in >= 0:
                yield from self._arrive(residency)
            if residency.last_write >= 0:
                self._written(residency.last_write)
            if residency.swap_out >= 0:
                yield from self._leave(residency)
        yield from self._end(visits, is_first)

    def _written(self, slot: int) -> None:
        """The host copy stays valid if the op in a slot makes the value that was there before once more."""
        left = self.values[slot].get(self.storage.id, -1 - slot)  # what is left in scratch memory is never the same
        if left != self.value:
            self.value, self.valid = left, None

    def _arrive(self, residency: DeviceResidency) -> Iterator[str]:
        copy, entry = self.plan.swap_ins[residency.swap_in], Entry(SWAP_IN, residency.swap_in)
        what = f"swap-in {residency.swap_in} of {self.storage.name}"
        place = self._place(copy.start - 1, copy.use, entry)
        if place is None:
            yield f"{what} has no place in the host slab from slot {copy.start - 1} to {copy.use}"
        elif place is not self.valid:
            yield f"{what} reads a host copy that is not valid then"
        yield from self._wait_in_order(what, entry)
        if residency.uses and not self.ordered.before(entry, self.ordered.op(residency.uses[0])):
            op = self.graph.ops[self.plan.order[residency.uses[0]]].name
            yield f"op {op} in slot {residency.uses[0]} does not wait for {what}"

    def _leave(self, residency: DeviceResidency) -> Iterator[str]:
        out, entry = self.plan.swap_outs[residency.swap_out], Entry(SWAP_OUT, residency.swap_out)
        what = f"swap-out {residency.swap_out} of {self.storage.name}"
        place = self._place(out.ready, out.release, entry)
        if place is None:
            yield f"{what} has no place in the host slab from slot {out.ready} to {out.release}"
        if residency.last_write >= 0 and not self.ordered.before(self.ordered.op(residency.last_write), entry):
            op = self.graph.ops[self.plan.order[residency.last_write]].name
            yield f"{what} does not wait for op {op} in slot {residency.last_write}, which writes it"
        if residency.swap_in >= 0 and not self.ordered.before(Entry(SWAP_IN, residency.swap_in), entry):
            yield f"{what} does not wait for swap-in {residency.swap_in}, which brings it"
        yield from self._wait_in_order(what, entry)
        self.valid = place

    def _place(self, start: int, stop: int, entry: Entry) -> HostPlace | None:
        """The place that is reserved throughout a copy; records the copy there."""
        for place in self.places:
            if place.residency.start <= start and stop <= place.residency.stop:
                place.copies.append(entry)
                return place
        return None

    def _wait_in_order(self, what: str, entry: Entry) -> Iterator[str]:
        if self.last_copy is not None and not self.ordered.before(self.last_copy, entry):
            yield f"{what} does not wait for the copy of the same storage before it"
        self.last_copy = entry

    def _end(self, visits: list[DeviceResidency], began_here: bool) -> Iterator[str]:
        name, end = self.storage.name, len(self.plan.order)
        stays_resident = bool(visits) and visits[-1].stop == end
        kept = self.valid is not None and self.valid.residency.stop == end
        if self.storage.persistent and began_here:
            if not stays_resident or visits[-1].swap_out >= 0:
                yield f"{name} is on the device when the step starts, but not when it ends"
            elif visits[-1].offset != visits[0].offset:
                first, last = visits[0].offset, visits[-1].offset
                yield f"{name} is at offset {first} when the step starts, but at {last} when it ends"
        elif self.storage.persistent and visits and not kept:
            yield f"{name} is not on the device when the step starts, and its host copy is not valid when it ends"
        if self.storage.id in self.graph.output_storages and self.storage.bytes > 0 and not (stays_resident or kept):
            yield f"{name} is returned by the step, but neither on the device nor on the host when it ends"
