"""Address walks until a step ends as it began, every resident at the offset where it started."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from planner.swap.draft.absences import first_gaps
from planner.swap.draft.draft import Draft, leave_unused, stays_of
from planner.swap.evict.address_pass import walk_addresses
from planner.swap.evict.address_space import Ground, blank_ground
from planner.swap.evict.cyclic_bytes import Walker
from planner.swap.evict.state import HERE, Route
from planner.swap.problem.problem import Bytes, Flags, Seconds

_MOST_WALKS = 12


@dataclass(frozen=True, eq=False)
class Placed:
    """A draft whose residencies, in the order of `stays_of`, have offsets in bytes."""

    draft: Draft
    offsets: Bytes


@dataclass(frozen=True, eq=False)
class Settler:
    """Walks an order with addresses; shares the scratch of a walker."""

    walker: Walker
    ground: Ground = field(repr=False)

    def draft(
        self,
        clock: Seconds,
        *,
        lead: float = 1.0,
        brief: int = 30,
        on_demand: bool = False,
        anchored: Flags | None = None,
    ) -> Placed | None:
        """Find who is away when, and where everybody lies.

        Args:
            clock: `[slots + 1]`, when each slot is thought to begin, and the end.
            lead: a reload is given this many times its work.
            brief: storages that die within this many slots lie at the upper end.
            on_demand: swap only what an op waits for, least recently used first.
            anchored: `[storages]`, held storages that never leave; others may stay on the device from one step to the
                next. None: no storage does.

        Returns:
            None where an op needs more than there is, or no steady state is found. Without storages that stay, neither
            happens as long as each op's own storages fit.

        Raises:
            Stopped: it was asked to stop.
        """
        one, problem, flow = self.walker, self.walker.problem, self.walker.flow
        route = Route(one.order, flow, one.walked, clock, one.work, lead, False, problem.stop.flag)
        inherits = np.empty(problem.ops, np.int32)
        nobody = np.zeros(problem.storages, np.bool_)
        fixed = nobody if anchored is None else anchored
        resident, home = fixed, np.zeros(problem.storages, np.int64)
        base = int(flow.bytes[fixed].sum())
        for attempt in range(_MOST_WALKS):
            count, stuck = walk_addresses(
                route, resident, home, fixed, problem.memory - base, on_demand, brief,
                one.taken, one.gaps, inherits, one.desk, self.ground,
            )  # fmt: skip
            problem.stop.check()
            if stuck >= 0:
                return None
            gaps = first_gaps(one.gaps, count)
            if anchored is None:
                break
            stays = flow.stateful & (one.desk.state == HERE) & ~fixed
            if attempt == 0:
                resident, home = stays | fixed, self._side_by_side(stays)
                continue
            idle = leave_unused(one.uses, gaps, resident)
            kept = fixed | (resident & stays & ~idle & (self.ground.offset == home))
            if (kept == resident).all():
                break
            resident = kept
        else:
            return None
        found = stays_of(flow, one.uses, resident, gaps, inherits)
        offsets = base + np.where(found.before >= 0, self.ground.left[found.before], self.ground.offset[found.storage])
        lowest = fixed[found.storage]
        offsets[lowest] = self._side_by_side(fixed)[found.storage[lowest]]
        return Placed(Draft(one.order, one.uses, resident, gaps, inherits), offsets)

    def _side_by_side(self, who: Flags) -> Bytes:
        """Offsets from the bottom up, the largest lowest."""
        sizes = self.walker.problem.flow.bytes
        offset, chosen = np.zeros(len(sizes), np.int64), np.flatnonzero(who)
        chosen = chosen[np.argsort(-sizes[chosen], kind="stable")]
        offset[chosen] = np.cumsum(sizes[chosen]) - sizes[chosen]
        return offset


def settler(walker: Walker) -> Settler:
    """Prepare to walk an order with addresses."""
    return Settler(walker, blank_ground(walker.problem.storages, len(walker.gaps.storage)))
