"""Address walks until a step ends as it began, every resident at the offset where it started."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from planner.swap.addresses import walk_addresses
from planner.swap.desk import HERE, Route
from planner.swap.draft import Draft, leave_unused, stays_of
from planner.swap.gaps import first_gaps
from planner.swap.ground import Ground, blank_ground
from planner.swap.problem import Bytes, Flags, Seconds
from planner.swap.steady import Walker

_MOST_WALKS = 50


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
        self, clock: Seconds, *, lead: float = 1.0, brief: int = 30, on_demand: bool = False, carry: bool = True
    ) -> Placed | None:
        """Find who is away when, and where everybody lies.

        Args:
            clock: `[slots + 1]`, when each slot is thought to begin, and the end.
            lead: a reload is given this many times its work.
            brief: storages that die within this many slots lie at the upper end.
            on_demand: swap only what an op waits for, least recently used first.
            carry: whether storages may stay on the device from one step to the next.

        Returns:
            None where an op needs more than there is, or no steady state is found. Without `carry` there always is one.
        """
        one, problem, flow = self.walker, self.walker.problem, self.walker.problem.flow
        route = Route(one.order, flow, one.uses, clock, one.work, lead)
        inherits = np.empty(problem.ops, np.int32)
        resident, home = np.zeros(problem.storages, np.bool_), np.zeros(problem.storages, np.int64)
        for attempt in range(_MOST_WALKS if carry else 1):
            count, stuck = walk_addresses(
                route, resident, home, problem.memory, on_demand, brief, one.gaps, inherits, one.desk, self.ground
            )
            if stuck >= 0:
                return None
            gaps = first_gaps(one.gaps, count)
            stays = flow.stateful & (one.desk.state == HERE)
            if not carry:
                break
            idle = leave_unused(one.uses, gaps, resident)
            kept = resident & stays & ~idle & (self.ground.offset == home)
            if attempt and (kept == resident).all():
                break
            if attempt:
                resident = kept
            else:
                resident, home = stays, self._homes(stays)
        else:
            return None
        draft = Draft(one.order, one.uses, resident, gaps, inherits)
        found = stays_of(flow, one.uses, resident, gaps, inherits)
        offsets = np.where(found.before >= 0, self.ground.left[found.before], self.ground.offset[found.storage])
        return Placed(draft, offsets)

    def _homes(self, stays: Flags) -> Bytes:
        """Side by side from the bottom, largest lowest."""
        sizes = self.walker.problem.flow.bytes
        home = np.zeros(len(sizes), np.int64)
        who = np.flatnonzero(stays)
        who = who[np.argsort(-sizes[who], kind="stable")]
        home[who] = np.cumsum(sizes[who]) - sizes[who]
        return home


def settler(walker: Walker) -> Settler:
    """Prepare to walk an order with addresses."""
    return Settler(walker, blank_ground(walker.problem.storages, len(walker.gaps.storage)))
