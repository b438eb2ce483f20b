"""What a plan's queues and spans say of each other, worked out once: see `planner.plan.schema` for the rules."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from planner.graph import Graph
from planner.plan.schema.swap_plan import HostResidency, Residency, SwapPlan

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class PlanIndex:
    """How each residency begins and ends, and which copies each slot waits for.

    Args:
        graph: with the plan's workspaces.
        plan: the plan.

    Attributes:
        storage, start, stop, offset, bytes: `[residencies]`, as the plan has them.
        copy_in: `[residencies]`, the swap-in that a residency begins with, -1 for none.
        copy_out: `[residencies]`, the swap-out that it ends with, -1 for none.
        communication: `[residencies]`, the last entry of the communication lane that touches it, -1 for none.
        from_step_start: `[residencies]`, whether it is there when the step starts: no copy and no op begins it.
        ends: `[residencies]`, whether its memory is free again before the step ends, or once its copy out is done.
        outs_due, ins_due: `[slots + 1]`, how many entries of each copy queue must be done before the op in a slot
            runs. Queues run in order, so these are always the first ones. The end of the step, slot `n`, waits for all.
    """

    def __init__(self, graph: Graph, plan: SwapPlan) -> None:
        self.graph, self.plan, self.slots = graph, plan, len(plan.order)
        rows = np.array([(r.storage, r.start, r.stop, r.offset) for r in plan.residencies], np.int64).reshape(-1, 4)
        self.storage, self.start, self.stop, self.offset = rows.T
        self.bytes: Ints = np.array([storage.bytes for storage in graph.storages], np.int64)[self.storage]
        arrivals = {(copy.storage, copy.start): entry for entry, copy in enumerate(plan.swap_ins)}
        departures = {(copy.storage, copy.release): entry for entry, copy in enumerate(plan.swap_outs)}
        self.copy_in = np.array([arrivals.get((r.storage, r.start), -1) for r in plan.residencies], np.int64)
        self.copy_out = np.array([departures.get((r.storage, r.stop), -1) for r in plan.residencies], np.int64)
        self.communication = self._communications()
        live_in = np.array([storage.live_in for storage in graph.storages], np.bool_)[self.storage]
        self.from_step_start: Flags = live_in & (self.copy_in < 0)
        self.ends: Flags = (self.stop < self.slots) | (self.copy_out >= 0)

    def _communications(self) -> Ints:
        found = np.full(len(self.start), -1, np.int64)
        for entry, beside in enumerate(self.plan.communications):
            workspace = self.graph.ops[self.plan.order[beside.start]].workspace
            touched = [*self.reads[beside.start], *self.writes[beside.start], workspace]
            there = (self.start <= beside.start) & (beside.start < self.stop)
            found[there & np.isin(self.storage, touched)] = entry
        return found

    @cached_property
    def _slots_of(self) -> dict[int, tuple[int, ...]]:
        found: dict[int, list[int]] = {}
        for slot, op in enumerate(self.plan.order):
            found.setdefault(op, []).append(slot)
        return {op: tuple(slots) for op, slots in found.items()}

    def slots_of(self, op: int) -> tuple[int, ...]:
        """The slots in which an op runs, ascending."""
        return self._slots_of.get(op, ())

    @cached_property
    def repeats(self) -> tuple[int, ...]:
        """The slots whose op ran before in the same step, ascending."""
        return tuple(sorted(slot for slots in self._slots_of.values() for slot in slots[1:]))

    @cached_property
    def first_runs(self) -> tuple[int, ...]:
        """The order without its repeats: each op where it runs first."""
        return tuple(self._slots_of)

    @cached_property
    def recomputed(self) -> Flags:
        """`[residencies]`, whether an op that ran before makes what is in it."""
        made = {(storage, slot) for slot in self.repeats for storage in self.writes[slot]}
        begins = zip(self.storage.tolist(), self.start.tolist(), strict=True)
        return np.array([begin in made for begin in begins], np.bool_) & (self.copy_in < 0)

    @cached_property
    def reads(self) -> list[tuple[int, ...]]:
        """By slot, the storages that its op reads; one that ran before leaves `Op.first_run_only` alone."""
        return self._by_slot(self.graph.reads, self.graph.reads_again)

    @cached_property
    def writes(self) -> list[tuple[int, ...]]:
        """By slot, the storages that its op writes; one that ran before leaves `Op.first_run_only` alone."""
        return self._by_slot(self.graph.writes, self.graph.writes_again)

    def _by_slot(self, first: tuple[tuple[int, ...], ...], again: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
        repeats = set(self.repeats)
        return [(again if slot in repeats else first)[op] for slot, op in enumerate(self.plan.order)]

    @cached_property
    def outs_due(self) -> list[int]:
        """How many swap-outs must be done before the op in each slot."""
        return _due([copy.release for copy in self.plan.swap_outs], self.slots)

    @cached_property
    def ins_due(self) -> list[int]:
        """How many swap-ins must be done before the op in each slot."""
        return _due([copy.use for copy in self.plan.swap_ins], self.slots)

    @cached_property
    def _by_storage(self) -> dict[int, list[int]]:
        """The residencies of each storage in order of time, by number."""
        found: dict[int, list[int]] = {}
        for number in np.argsort(self.start, kind="stable").tolist():
            found.setdefault(int(self.storage[number]), []).append(number)
        return found

    @cached_property
    def _on_host(self) -> dict[int, list[HostResidency]]:
        found: dict[int, list[HostResidency]] = {}
        for residency in self.plan.host_residencies:
            found.setdefault(residency.storage, []).append(residency)
        return found

    def numbers(self, storage: int) -> list[int]:
        """The residencies of a storage in order of time, each by its place in the plan."""
        return self._by_storage.get(storage, [])

    @cached_property
    def _on_device(self) -> dict[int, list[Residency]]:
        residencies = self.plan.residencies
        return {storage: [residencies[number] for number in found] for storage, found in self._by_storage.items()}

    def residencies(self, storage: int) -> list[Residency]:
        """The residencies of a storage in order of time."""
        return self._on_device.get(storage, [])

    def residency(self, storage: int, slot: int) -> Residency | None:
        """The residency that covers a slot."""
        found = self.residencies(storage)
        number = bisect_right(found, slot, key=lambda residency: residency.start) - 1
        return found[number] if number >= 0 and slot < found[number].stop else None

    def residency_from(self, storage: int, slot: int) -> Residency | None:
        """The residency that begins at a slot."""
        return next((one for one in self.residencies(storage) if one.start == slot), None)

    def residency_until(self, storage: int, slot: int) -> Residency | None:
        """The residency that stops at a slot."""
        return next((one for one in self.residencies(storage) if one.stop == slot), None)

    def host_residency(self, storage: int, start: int, stop: int) -> HostResidency | None:
        """The place in the host slab that a storage has from slot `start` to slot `stop`."""
        return next((one for one in self._on_host.get(storage, ()) if one.start <= start and stop <= one.stop), None)


def _due(slots: list[int], n: int) -> list[int]:
    """`[n + 1]`, how many entries of a queue must be done before each slot, given the slot that each is due by."""
    furthest = [0] * (n + 1)
    for entry, slot in enumerate(slots):
        furthest[slot] = entry + 1
    furthest[n] = len(slots)
    return list(accumulate(furthest, max))
