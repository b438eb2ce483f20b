"""No byte has two owners at once, on the device or on the host, and its next owner waits for the one before."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from planner.graph import Graph
from planner.plan.schema.lanes import SWAP_IN, SWAP_OUT
from planner.plan.schema.swap_plan import SwapPlan
from planner.plan.validator.copies import HostPlaces
from planner.plan.validator.happens_before import Entry, HappensBefore
from planner.plan.validator.residencies import Begin, DeviceResidencies, DeviceResidency


class Owner(NamedTuple):
    """A storage that occupies some bytes for a span of slots.

    Args:
        name: of the storage.
        start, stop: slots.
        offset, bytes: which bytes.
        first: accesses that come before all others.
        last: accesses such that each of the others comes before one of them.
    """

    name: str
    start: int
    stop: int
    offset: int
    bytes: int
    first: tuple[Entry, ...]
    last: tuple[Entry, ...]


def check_device(plan: SwapPlan, graph: Graph, residencies: DeviceResidencies, ordered: HappensBefore) -> list[str]:
    """Check the arena: its bytes have one owner at a time, and its size is as stated and within budget."""
    owners = [
        Owner(
            graph.storages[residency.storage].name, residency.start, residency.stop, residency.offset,
            graph.storages[residency.storage].bytes, *_accesses(residency, ordered),
        )
        for visits in residencies.values()
        for residency in visits
    ]  # fmt: skip
    return [
        *_size(owners, "device", plan.peak_bytes, plan.budget_bytes, graph.outside_bytes),
        *_conflicts(owners, "on the device", ordered),
    ]


def check_host(plan: SwapPlan, graph: Graph, places: HostPlaces, ordered: HappensBefore) -> list[str]:
    """Check the host slab in the same way."""
    owners = []
    for spans in places.values():
        for place in spans:
            who, storage_info = place.residency, graph.storages[place.residency.storage]
            # Each copy of a place waits for the one before it.
            owners.append(
                Owner(
                    storage_info.name, who.start, who.stop, who.offset, storage_info.bytes,
                    tuple(place.copies[:1]), tuple(place.copies[-1:]),
                )
            )  # fmt: skip
    return [
        *_size(owners, "host", plan.host_bytes, plan.host_budget_bytes),
        *_conflicts(owners, "in the host slab", ordered),
    ]


def _accesses(residency: DeviceResidency, ordered: HappensBefore) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """The access that begins a residency, and the last of each lane; a reusing op belongs to the next residency."""
    first: tuple[Entry, ...] = ()
    last = [ordered.op(slot) for slot in residency.uses[-2:] if slot < residency.stop]
    if ordered.handed_over:
        last += [ordered.op(slot) for slot in residency.uses if slot < residency.stop and slot in ordered.handed_over]
    if residency.begin is Begin.MADE:
        first = (ordered.op(residency.start),)
    if residency.swap_in >= 0:
        first = (Entry(SWAP_IN, residency.swap_in),)
        last.append(first[0])
    if residency.swap_out >= 0:
        last.append(Entry(SWAP_OUT, residency.swap_out))
    return first, tuple(last)


def _size(owners: list[Owner], where: str, stated: int, limit: int | None, outside: int = 0) -> Iterator[str]:
    top = max((owner.offset + owner.bytes for owner in owners), default=0)
    if top != stated:
        yield f"the plan says it takes {stated} bytes on the {where} and takes {top}"
    if limit is not None and top + outside > limit:
        beside = f" and its ops up to {outside} outside of its arena" if outside else ""
        yield f"the plan takes {top} bytes on the {where}{beside}, {top + outside - limit} more than its budget"


def _conflicts(owners: list[Owner], where: str, ordered: HappensBefore) -> Iterator[str]:
    """Compare each owner with the last owners of its bytes; earlier ones are ordered transitively."""
    before = _LastOwners()
    for owner in sorted(owners, key=lambda owner: owner.start):
        if owner.bytes == 0:
            continue
        for earlier in before.replace(owner):
            if owner.start < earlier.stop:
                yield f"{earlier.name} and {owner.name} share bytes {where} in slot {owner.start}"
            elif not all(ordered.before(last, first) for last in earlier.last for first in owner.first):
                yield (
                    f"{owner.name} gets bytes {where} in slot {owner.start} "
                    f"without waiting for all that is done to {earlier.name} there"
                )


class _LastOwners:
    """The last owner of each byte: `owners[k]` of those from `starts[k]` up to `starts[k + 1]`."""

    def __init__(self) -> None:
        self.starts: list[int] = [0]
        self.owners: list[Owner | None] = [None]

    def replace(self, owner: Owner) -> list[Owner]:
        """Assign an owner its bytes; returns the last owners of any of them."""
        low, high = owner.offset, owner.offset + owner.bytes
        first = bisect_right(self.starts, low) - 1
        after = bisect_left(self.starts, high)
        replaced = self.owners[first:after]
        starts: list[int] = [low]
        owners: list[Owner | None] = [owner]
        if self.starts[first] < low:
            starts.insert(0, self.starts[first])
            owners.insert(0, replaced[0])
        if after == len(self.starts) or self.starts[after] > high:
            starts.append(high)
            owners.append(replaced[-1])
        self.starts[first:after], self.owners[first:after] = starts, owners
        found = {id(earlier): earlier for earlier in replaced if earlier is not None}
        return list(found.values())
