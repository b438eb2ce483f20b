"""From an order and a pool to a plan: walk until the step ends as it began, run by control edges, time by slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from planner.plan import SwapPlan
from planner.swap.draft.absences import Gaps, blank_gaps, first_gaps
from planner.swap.draft.draft import Draft, stays_of
from planner.swap.emit.finish import finish_placed
from planner.swap.evict.cyclic_addresses import Placed
from planner.swap.evict.cyclic_bytes import clock_of
from planner.swap.methods.swapadvisor.allocation_gene import Allocation
from planner.swap.methods.swapadvisor.edges import run_edges, write_slots
from planner.swap.methods.swapadvisor.pool import Demand, Pool, fits, pool_of
from planner.swap.methods.swapadvisor.pool_walk import HERE, Hall, Moves, blank_hall, blank_moves, walk_pool
from planner.swap.problem.problem import Flags, Ints, Problem, Seconds
from planner.swap.problem.uses import Uses, uses_of
from planner.swap.simulate.draft_timing import Timing, copy_seconds
from planner.swap.simulate.streams import run_queues

#: Walks that look for a steady state before no parameter stays on the device from one step to the next.
_MOST_WALKS = 8


class Settled(NamedTuple):
    """A walk that ends as it began: when storages are touched, who is there at the start, and how many gaps."""

    uses: Uses
    resident: Flags
    gap_count: int


class Timed(NamedTuple):
    """When everything happens: `by_edges` is `[slots + 1]`, when each slot would begin by control edges alone, and the
    end; `timing` is by the slots of a plan."""

    by_edges: Seconds
    timing: Timing


class Desk(NamedTuple):
    """Scratch of one planner."""

    gaps: Gaps
    moves: Moves
    inherits: Ints
    hall: Hall
    waiting: Ints
    ready: Ints


@dataclass(frozen=True, eq=False)
class PoolPlanner:
    """Plans one individual at a time on scratch of its own.

    Args:
        problem, demand: what is planned, and its sizes.
        work: `[storages]`, seconds each takes on the link alone.
        threshold: `[storages]`, seconds ago that a storage must have been used last to be evicted before others.
        fleeting: `[storages]`, held storages that need not outlive the step.
        desk: scratch.
    """

    problem: Problem
    demand: Demand
    work: Seconds
    threshold: Seconds
    fleeting: Flags
    desk: Desk

    def seconds(self, order: Ints, allocation: Allocation) -> float:
        """The step's time by the simulator, infinite where the pool does not fit memory or some op not the pool."""
        if not fits(self.demand, allocation):
            return np.inf
        settled = self.settle(order, pool_of(self.demand, allocation))
        return np.inf if settled is None else self.time(order, settled).timing.seconds

    def plan(self, order: Ints, allocation: Allocation) -> SwapPlan:
        """Write down the plan of an individual that fits."""
        pool = pool_of(self.demand, allocation)
        settled = self.settle(order, pool)
        if settled is None:
            raise ValueError("an op of this order does not fit this pool")
        uses, resident, count = settled
        desk, flow = self.desk, self.problem.flow
        timing = self.time(order, settled).timing
        gaps, place = first_gaps(desk.gaps, count), desk.moves.place[:count]
        draft = Draft(order, uses, resident, gaps, desk.inherits.copy())
        stays = stays_of(flow, uses, resident, gaps, desk.inherits)
        objects = np.where(stays.before >= 0, np.append(place, -1)[stays.before], desk.hall.object[stays.storage])
        return finish_placed(self.problem, Placed(draft, pool.offset[objects]), timing, "swapadvisor")

    def settle(self, order: Ints, pool: Pool) -> Settled | None:
        """Walk until the residents at both ends of the step are the same, each in the same object.

        The first pass begins with no parameter on the device, the second with those that were there at its end. Who of
        these is gone at the end, or elsewhere, begins the next pass on the host.
        """
        desk, flow = self.desk, self.problem.flow
        uses, clock = uses_of(order, flow), clock_of(self.problem, order)
        nowhere = np.full(self.problem.storages, -1, np.int32)
        resident, home = self.fleeting.copy(), nowhere
        for attempt in range(_MOST_WALKS + 1):
            count, stuck = walk_pool(
                order, flow, uses, clock, pool, self.threshold, resident, home,
                desk.gaps, desk.moves, desk.inherits, desk.hall,
            )  # fmt: skip
            self.problem.stop.check()
            if stuck >= 0:
                return None
            objects = desk.hall.object[:-1]
            stays = flow.stateful & (desk.hall.state[:-1] == HERE)
            if attempt == 0:
                home = np.where(stays, objects, nowhere)
                resident = stays | self.fleeting
                continue
            kept = resident & (~flow.stateful | (stays & (objects == home)))
            if (kept == resident).all():
                return Settled(uses, resident, count)
            resident = kept | self.fleeting
            if attempt == _MOST_WALKS - 1:
                resident, home = self.fleeting.copy(), nowhere
        return None

    def time(self, order: Ints, settled: Settled) -> Timed:
        """Run the swaps by their control edges, write them down as slots, and run those."""
        desk, shared, n = self.desk, self.problem.copies.shared, self.problem.ops
        seconds = self.problem.seconds[order]
        outs, ins, begin, done = run_edges(
            seconds, desk.gaps, desk.moves, settled.gap_count, self.work, shared, desk.waiting, desk.ready
        )
        write_slots(desk.gaps, desk.moves, settled.gap_count, begin, done)
        gaps = desk.gaps
        compute, out_spans, in_spans = np.empty((n, 2)), np.empty((len(outs), 2)), np.empty((len(ins), 2))
        total = run_queues(
            seconds, gaps.ready[outs], gaps.release[outs], self.work[gaps.storage[outs]],
            gaps.reload[ins], gaps.use[ins], self.work[gaps.storage[ins]],
            shared, np.empty((2, n + 1), np.int32), compute, out_spans, in_spans,
        )  # fmt: skip
        return Timed(begin, Timing(total, outs, ins, compute, out_spans, in_spans))


def pool_planner(problem: Problem, demand: Demand, victim_threshold: float) -> PoolPlanner:
    """Prepare to plan with pools; `victim_threshold` is in times that a storage takes on the link."""
    flow = problem.flow
    room = len(flow.touches.items) + 2 * problem.storages  # at most one gap before each use and one at either end
    work = copy_seconds(problem)
    touched = np.zeros(problem.storages, np.bool_)
    touched[flow.touches.items] = True
    desk = Desk(
        blank_gaps(room), blank_moves(room), np.empty(problem.ops, np.int32), blank_hall(problem.storages),
        np.empty(room, np.int32), np.empty(room, np.int32),
    )  # fmt: skip
    return PoolPlanner(problem, demand, work, victim_threshold * work, flow.held & ~flow.stateful & touched, desk)
