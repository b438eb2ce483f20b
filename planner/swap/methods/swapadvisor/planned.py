"""From an order and a pool to a plan: eviction passes to a cyclic schedule, run by control edges, timed by slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from planner.plan import SwapPlan
from planner.swap.draft.absences import Absences, blank_absences, first_absences
from planner.swap.draft.draft import UnplacedPlan, unplaced_residencies
from planner.swap.emit.place_and_assemble import finish_placed
from planner.swap.evict.cyclic_addresses import PlacedPlan
from planner.swap.evict.cyclic_bytes import clock_of
from planner.swap.methods.swapadvisor.allocation_gene import Allocation
from planner.swap.methods.swapadvisor.edges import run_edges, write_slots
from planner.swap.methods.swapadvisor.pool import ClassPool, Demand, fits, pool_of
from planner.swap.methods.swapadvisor.pool_walk import (
    HERE,
    PoolMoves,
    PoolState,
    blank_pool_moves,
    blank_pool_state,
    evict_by_class,
)
from planner.swap.problem.problem import Flags, Ints, Problem, Seconds
from planner.swap.problem.uses import Uses, uses_of
from planner.swap.simulate.draft_timing import Timing, copy_seconds
from planner.swap.simulate.streams import run_queues

#: Passes that look for a cyclic schedule before no parameter is kept on the device from one step to the next.
_MOST_WALKS = 8


class CyclicPool(NamedTuple):
    """A pass that ends as it began: the uses of storages, which are resident at the start, and how many absences."""

    uses: Uses
    resident: Flags
    absence_count: int


class PoolTiming(NamedTuple):
    """The times of a step: `by_edges` is `[slots + 1]`, when each slot would begin by control edges alone, and the
    end; `timing` is by the slots of a plan."""

    by_edges: Seconds
    timing: Timing


class PoolScratch(NamedTuple):
    """Scratch of one planner."""

    absences: Absences
    moves: PoolMoves
    reuses_buffer_of: Ints
    pool_state: PoolState
    waiting: Ints
    ready: Ints


@dataclass(frozen=True, eq=False)
class PoolPlanner:
    """Plans one individual at a time on scratch of its own.

    Args:
        problem, demand: what is planned, and its sizes.
        work: `[storages]`, seconds each takes on the link alone.
        threshold: `[storages]`, seconds ago that a storage must have been used last to be evicted before others.
        fleeting: `[storages]`, live-in storages that need not outlive the step.
        eviction: scratch.
    """

    problem: Problem
    demand: Demand
    work: Seconds
    threshold: Seconds
    fleeting: Flags
    eviction: PoolScratch

    def seconds(self, order: Ints, allocation: Allocation) -> float:
        """Step time by the simulator, infinite if the pool does not fit memory or some op does not fit the pool."""
        if not fits(self.demand, allocation):
            return np.inf
        settled = self.settle(order, pool_of(self.demand, allocation))
        return np.inf if settled is None else self.time(order, settled).timing.seconds

    def plan(self, order: Ints, allocation: Allocation) -> SwapPlan:
        """The plan of an individual that fits."""
        pool = pool_of(self.demand, allocation)
        settled = self.settle(order, pool)
        if settled is None:
            raise ValueError("an op of this order does not fit this pool")
        uses, resident, count = settled
        eviction, flow = self.eviction, self.problem.flow
        timing = self.time(order, settled).timing
        absences, place = first_absences(eviction.absences, count), eviction.moves.place[:count]
        draft = UnplacedPlan(order, uses, resident, absences, eviction.reuses_buffer_of.copy())
        stays = unplaced_residencies(flow, uses, resident, absences, eviction.reuses_buffer_of)
        objects = np.where(
            stays.before >= 0, np.append(place, -1)[stays.before], eviction.pool_state.object[stays.storage]
        )
        return finish_placed(self.problem, PlacedPlan(draft, pool.offset[objects]), timing, "swapadvisor")

    def settle(self, order: Ints, pool: ClassPool) -> CyclicPool | None:
        """Run passes until the residents at both ends of the step are the same, each in the same object.

        The first pass begins with no parameter on the device, the second with those that were there at its end. Those
        that are gone at the end, or in another object, begin the next pass on the host.
        """
        eviction, flow = self.eviction, self.problem.flow
        uses, clock = uses_of(order, flow), clock_of(self.problem, order)
        nowhere = np.full(self.problem.storages, -1, np.int32)
        resident, home = self.fleeting.copy(), nowhere
        for attempt in range(_MOST_WALKS + 1):
            count, stuck = evict_by_class(
                order, flow, uses, clock, pool, self.threshold, resident, home,
                eviction.absences, eviction.moves, eviction.reuses_buffer_of, eviction.pool_state,
            )  # fmt: skip
            self.problem.stop.check()
            if stuck >= 0:
                return None
            objects = eviction.pool_state.object[:-1]
            stays = flow.persistent & (eviction.pool_state.state[:-1] == HERE)
            if attempt == 0:
                home = np.where(stays, objects, nowhere)
                resident = stays | self.fleeting
                continue
            kept = resident & (~flow.persistent | (stays & (objects == home)))
            if (kept == resident).all():
                return CyclicPool(uses, resident, count)
            resident = kept | self.fleeting
            if attempt == _MOST_WALKS - 1:
                resident, home = self.fleeting.copy(), nowhere
        return None

    def time(self, order: Ints, settled: CyclicPool) -> PoolTiming:
        """Run the swaps by their control edges, convert the times to slots, and run those."""
        eviction, shared, n = self.eviction, self.problem.copies.shared, self.problem.ops
        seconds = self.problem.seconds[order]
        outs, ins, begin, done = run_edges(
            seconds,
            eviction.absences,
            eviction.moves,
            settled.absence_count,
            self.work,
            shared,
            eviction.waiting,
            eviction.ready,
        )
        write_slots(eviction.absences, eviction.moves, settled.absence_count, begin, done)
        absences = eviction.absences
        compute, out_spans, in_spans = np.empty((n, 2)), np.empty((len(outs), 2)), np.empty((len(ins), 2))
        total = run_queues(
            seconds, absences.ready[outs], absences.release[outs], self.work[absences.storage[outs]],
            absences.reload[ins], absences.use[ins], self.work[absences.storage[ins]],
            shared, np.empty((2, n + 1), np.int32), compute, out_spans, in_spans,
        )  # fmt: skip
        return PoolTiming(begin, Timing(total, outs, ins, compute, out_spans, in_spans))


def pool_planner(problem: Problem, demand: Demand, victim_threshold: float) -> PoolPlanner:
    """Prepare to plan with pools; `victim_threshold` is in multiples of a storage's time on the link."""
    flow = problem.flow
    room = len(flow.touches.items) + 2 * problem.storages  # at most one absence before each use and one at either end
    work = copy_seconds(problem)
    touched = np.zeros(problem.storages, np.bool_)
    touched[flow.touches.items] = True
    eviction = PoolScratch(
        blank_absences(room), blank_pool_moves(room), np.empty(problem.ops, np.int32),
        blank_pool_state(problem.storages), np.empty(room, np.int32), np.empty(room, np.int32),
    )  # fmt: skip
    return PoolPlanner(
        problem, demand, work, victim_threshold * work, flow.live_in & ~flow.persistent & touched, eviction
    )
