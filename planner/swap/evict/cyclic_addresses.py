"""Cyclic schedules by addresses: address passes run until the step ends with every resident at its initial offset."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from planner.swap.draft.absences import first_absences
from planner.swap.draft.draft import UnplacedPlan, evicted_before_use, unplaced_residencies
from planner.swap.evict.address_pass import evict_by_address
from planner.swap.evict.address_space import AddressSpace, blank_address_space
from planner.swap.evict.cyclic_bytes import BytesPass
from planner.swap.evict.state import ON_DEVICE, EvictionInputs
from planner.swap.problem.problem import Bytes, Flags, Seconds

_MAX_PASSES = 12


@dataclass(frozen=True, eq=False)
class PlacedPlan:
    """An unplaced plan with offsets in bytes for its residencies, in the order of `unplaced_residencies`."""

    draft: UnplacedPlan
    offsets: Bytes


@dataclass(frozen=True, eq=False)
class AddressPass:
    """Runs address passes over an order.

    Args:
        bytes_pass: the bytes pass over the same order; its scratch is shared.
        space: scratch of the passes.
    """

    bytes_pass: BytesPass
    space: AddressSpace = field(repr=False)

    def draft(
        self,
        clock: Seconds,
        *,
        lead: float = 1.0,
        short_lived_slots: int = 30,
        on_demand: bool = False,
        always_resident: Flags | None = None,
    ) -> PlacedPlan | None:
        """Find absences and offsets such that the step ends with the residents and offsets it starts with.

        Args:
            clock: `[slots + 1]`, when each slot is estimated to begin, and the end, in seconds.
            lead: a reload is given this many times its work.
            short_lived_slots: storages that die within this many slots are placed at the upper end of memory.
            on_demand: swap only what an op waits for, least recently used first.
            always_resident: `[storages]`, live-in storages that never leave; others may stay on the device from one
                step to the next. None: no storage does.

        Returns:
            The placed plan; None if an op needs more memory than there is, or no cyclic schedule is found. If no
            storage stays, neither happens as long as each op's own storages fit.

        Raises:
            Cancelled: cancellation was requested.
        """
        bytes_pass, problem, arrays = self.bytes_pass, self.bytes_pass.problem, self.bytes_pass.arrays
        inputs = EvictionInputs(
            bytes_pass.order, arrays, bytes_pass.pass_uses, clock, bytes_pass.work, lead, False, problem.stop.flag
        )
        reuses_buffer_of = np.empty(problem.ops, np.int32)
        no_storages = np.zeros(problem.storages, np.bool_)
        fixed = no_storages if always_resident is None else always_resident
        resident, initial_offsets = fixed, np.zeros(problem.storages, np.int64)
        base = int(arrays.bytes[fixed].sum())
        for attempt in range(_MAX_PASSES):
            count, failed_slot = evict_by_address(
                inputs, resident, initial_offsets, fixed, problem.memory - base, on_demand, short_lived_slots,
                bytes_pass.required_reuse, bytes_pass.absences, reuses_buffer_of, bytes_pass.eviction, self.space,
            )  # fmt: skip
            problem.stop.check()
            if failed_slot >= 0:
                return None
            absences = first_absences(bytes_pass.absences, count)
            if always_resident is None:
                break
            resident_at_end = arrays.persistent & (bytes_pass.eviction.state == ON_DEVICE) & ~fixed
            if attempt == 0:
                resident, initial_offsets = resident_at_end | fixed, self._side_by_side(resident_at_end)
                continue
            unused = evicted_before_use(bytes_pass.uses, absences, resident)
            still_resident = fixed | (resident & resident_at_end & ~unused & (self.space.offset == initial_offsets))
            if (still_resident == resident).all():
                break
            resident = still_resident
        else:
            return None
        residencies = unplaced_residencies(arrays, bytes_pass.uses, resident, absences, reuses_buffer_of)
        offsets = base + np.where(
            residencies.next_absence >= 0,
            self.space.offset_at_release[residencies.next_absence],
            self.space.offset[residencies.storage],
        )
        at_bottom = fixed[residencies.storage]
        offsets[at_bottom] = self._side_by_side(fixed)[residencies.storage[at_bottom]]
        return PlacedPlan(
            UnplacedPlan(bytes_pass.order, bytes_pass.uses, resident, absences, reuses_buffer_of), offsets
        )

    def _side_by_side(self, selected: Flags) -> Bytes:
        """`[storages]`, offsets of the chosen storages from the bottom up, the largest lowest."""
        sizes = self.bytes_pass.problem.arrays.bytes
        offset, chosen = np.zeros(len(sizes), np.int64), np.flatnonzero(selected)
        chosen = chosen[np.argsort(-sizes[chosen], kind="stable")]
        offset[chosen] = np.cumsum(sizes[chosen]) - sizes[chosen]
        return offset


def address_pass(bytes_pass: BytesPass) -> AddressPass:
    """Prepare address passes over an order."""
    return AddressPass(bytes_pass, blank_address_space(bytes_pass.problem.storages, len(bytes_pass.absences.storage)))
