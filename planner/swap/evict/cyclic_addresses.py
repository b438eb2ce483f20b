"""Cyclic schedules by addresses: address passes run until the step ends with every resident at its initial offset."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from planner.swap.draft.absences import first_absences
from planner.swap.draft.draft import UnplacedPlan, leave_unused, unplaced_residencies
from planner.swap.evict.address_pass import evict_by_address
from planner.swap.evict.address_space import AddressSpace, blank_address_space
from planner.swap.evict.cyclic_bytes import BytesPass
from planner.swap.evict.state import HERE, EvictionInputs
from planner.swap.problem.problem import Bytes, Flags, Seconds

_MOST_WALKS = 12


@dataclass(frozen=True, eq=False)
class PlacedPlan:
    """An unplaced plan with offsets in bytes for its residencies, in the order of `unplaced_residencies`."""

    draft: UnplacedPlan
    offsets: Bytes


@dataclass(frozen=True, eq=False)
class AddressPass:
    """Runs address passes over an order.

    Args:
        walker: the bytes pass over the same order; its scratch is shared.
        space: scratch of the passes.
    """

    walker: BytesPass
    space: AddressSpace = field(repr=False)

    def draft(
        self,
        clock: Seconds,
        *,
        lead: float = 1.0,
        brief: int = 30,
        on_demand: bool = False,
        anchored: Flags | None = None,
    ) -> PlacedPlan | None:
        """Find absences and offsets such that the step ends with the residents and offsets it starts with.

        Args:
            clock: `[slots + 1]`, when each slot is estimated to begin, and the end, in seconds.
            lead: a reload is given this many times its work.
            brief: storages that die within this many slots are placed at the upper end of memory.
            on_demand: swap only what an op waits for, least recently used first.
            anchored: `[storages]`, live-in storages that never leave; others may stay on the device from one step to
                the next. None: no storage does.

        Returns:
            The placed plan; None if an op needs more memory than there is, or no cyclic schedule is found. If no
            storage stays, neither happens as long as each op's own storages fit.

        Raises:
            Cancelled: cancellation was requested.
        """
        one, problem, flow = self.walker, self.walker.problem, self.walker.flow
        route = EvictionInputs(one.order, flow, one.pass_uses, clock, one.work, lead, False, problem.stop.flag)
        reuses_buffer_of = np.empty(problem.ops, np.int32)
        nobody = np.zeros(problem.storages, np.bool_)
        fixed = nobody if anchored is None else anchored
        resident, home = fixed, np.zeros(problem.storages, np.int64)
        base = int(flow.bytes[fixed].sum())
        for attempt in range(_MOST_WALKS):
            count, stuck = evict_by_address(
                route, resident, home, fixed, problem.memory - base, on_demand, brief,
                one.required_reuse, one.absences, reuses_buffer_of, one.eviction, self.space,
            )  # fmt: skip
            problem.stop.check()
            if stuck >= 0:
                return None
            absences = first_absences(one.absences, count)
            if anchored is None:
                break
            stays = flow.persistent & (one.eviction.state == HERE) & ~fixed
            if attempt == 0:
                resident, home = stays | fixed, self._side_by_side(stays)
                continue
            idle = leave_unused(one.uses, absences, resident)
            kept = fixed | (resident & stays & ~idle & (self.space.offset == home))
            if (kept == resident).all():
                break
            resident = kept
        else:
            return None
        found = unplaced_residencies(flow, one.uses, resident, absences, reuses_buffer_of)
        offsets = base + np.where(found.before >= 0, self.space.left[found.before], self.space.offset[found.storage])
        lowest = fixed[found.storage]
        offsets[lowest] = self._side_by_side(fixed)[found.storage[lowest]]
        return PlacedPlan(UnplacedPlan(one.order, one.uses, resident, absences, reuses_buffer_of), offsets)

    def _side_by_side(self, who: Flags) -> Bytes:
        """`[storages]`, offsets of the chosen storages from the bottom up, the largest lowest."""
        sizes = self.walker.problem.flow.bytes
        offset, chosen = np.zeros(len(sizes), np.int64), np.flatnonzero(who)
        chosen = chosen[np.argsort(-sizes[chosen], kind="stable")]
        offset[chosen] = np.cumsum(sizes[chosen]) - sizes[chosen]
        return offset


def address_pass(walker: BytesPass) -> AddressPass:
    """Prepare address passes over an order."""
    return AddressPass(walker, blank_address_space(walker.problem.storages, len(walker.absences.storage)))
