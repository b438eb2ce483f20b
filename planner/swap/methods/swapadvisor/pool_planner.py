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
from planner.swap.methods.swapadvisor.control_edges import run_edges, write_slots
from planner.swap.methods.swapadvisor.pool import ClassPool, Demand, fits, pool_of
from planner.swap.methods.swapadvisor.pool_eviction_pass import (
    ON_DEVICE,
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
_MAX_PASSES = 8


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
        temporary: `[storages]`, live-in storages that need not outlive the step.
        scratch: scratch.
    """

    problem: Problem
    demand: Demand
    work: Seconds
    threshold: Seconds
    temporary: Flags
    scratch: PoolScratch

    def seconds(self, order: Ints, allocation: Allocation) -> float:
        """Step time by the simulator, infinite if the pool does not fit memory or some op does not fit the pool."""
        if not fits(self.demand, allocation):
            return np.inf
        cyclic_pool = self.find_cyclic(order, pool_of(self.demand, allocation))
        return np.inf if cyclic_pool is None else self.time(order, cyclic_pool).timing.seconds

    def plan(self, order: Ints, allocation: Allocation) -> SwapPlan:
        """The plan of an individual that fits."""
        pool = pool_of(self.demand, allocation)
        cyclic_pool = self.find_cyclic(order, pool)
        if cyclic_pool is None:
            raise ValueError("an op of this order does not fit this pool")
        uses, resident, count = cyclic_pool.uses, cyclic_pool.resident, cyclic_pool.absence_count
        scratch, arrays = self.scratch, self.problem.arrays
        timing = self.time(order, cyclic_pool).timing
        absences, evicted_from = first_absences(scratch.absences, count), scratch.moves.object[:count]
        draft = UnplacedPlan(order, uses, resident, absences, scratch.reuses_buffer_of.copy())
        residencies = unplaced_residencies(arrays, uses, resident, absences, scratch.reuses_buffer_of)
        objects = np.where(
            residencies.next_absence >= 0,
            np.append(evicted_from, -1)[residencies.next_absence],
            scratch.pool_state.object[residencies.storage],
        )
        return finish_placed(self.problem, PlacedPlan(draft, pool.offset[objects]), timing, "swapadvisor")

    def find_cyclic(self, order: Ints, pool: ClassPool) -> CyclicPool | None:
        """Run passes until the residents at both ends of the step are the same, each in the same object.

        The first pass begins with no parameter on the device, the second with those that were there at its end. Those
        that are gone at the end, or in another object, begin the next pass on the host.
        """
        scratch, arrays = self.scratch, self.problem.arrays
        uses, clock = uses_of(order, arrays), clock_of(self.problem, order)
        no_objects = np.full(self.problem.storages, -1, np.int32)
        resident, initial_objects = self.temporary.copy(), no_objects
        for attempt in range(_MAX_PASSES + 1):
            count, failed_slot = evict_by_class(
                order, arrays, uses, clock, pool, self.threshold, resident, initial_objects,
                scratch.absences, scratch.moves, scratch.reuses_buffer_of, scratch.pool_state,
            )  # fmt: skip
            self.problem.stop.check()
            if failed_slot >= 0:
                return None
            objects = scratch.pool_state.object[:-1]
            resident_at_end = arrays.persistent & (scratch.pool_state.state[:-1] == ON_DEVICE)
            if attempt == 0:
                initial_objects = np.where(resident_at_end, objects, no_objects)
                resident = resident_at_end | self.temporary
                continue
            still_resident = resident & (~arrays.persistent | (resident_at_end & (objects == initial_objects)))
            if (still_resident == resident).all():
                return CyclicPool(uses, resident, count)
            resident = still_resident | self.temporary
            if attempt == _MAX_PASSES - 1:
                resident, initial_objects = self.temporary.copy(), no_objects
        return None

    def time(self, order: Ints, cyclic_pool: CyclicPool) -> PoolTiming:
        """Run the swaps by their control edges, convert the times to slots, and run those."""
        scratch, shared, n = self.scratch, self.problem.link.shared, self.problem.ops
        seconds = self.problem.seconds[order]
        outs, ins, begin, done = run_edges(
            seconds,
            scratch.absences,
            scratch.moves,
            cyclic_pool.absence_count,
            self.work,
            shared,
            scratch.waiting,
            scratch.ready,
        )
        write_slots(scratch.absences, scratch.moves, cyclic_pool.absence_count, begin, done)
        absences = scratch.absences
        compute, out_spans, in_spans = np.empty((n, 2)), np.empty((len(outs), 2)), np.empty((len(ins), 2))
        total = run_queues(
            seconds, absences.ready[outs], absences.release[outs], self.work[absences.storage[outs]],
            absences.reload[ins], absences.use[ins], self.work[absences.storage[ins]],
            shared, np.empty((2, n + 1), np.int32), compute, out_spans, in_spans,
        )  # fmt: skip
        return PoolTiming(begin, Timing(total, outs, ins, compute, out_spans, in_spans))


def pool_planner(problem: Problem, demand: Demand, victim_threshold: float) -> PoolPlanner:
    """Prepare to plan with pools; `victim_threshold` is in multiples of a storage's time on the link."""
    arrays = problem.arrays
    capacity = (
        len(arrays.touches.items) + 2 * problem.storages
    )  # at most one absence before each use and one at either end
    work = copy_seconds(problem)
    touched = np.zeros(problem.storages, np.bool_)
    touched[arrays.touches.items] = True
    scratch = PoolScratch(
        blank_absences(capacity), blank_pool_moves(capacity), np.empty(problem.ops, np.int32),
        blank_pool_state(problem.storages), np.empty(capacity, np.int32), np.empty(capacity, np.int32),
    )  # fmt: skip
    return PoolPlanner(
        problem, demand, work, victim_threshold * work, arrays.live_in & ~arrays.persistent & touched, scratch
    )
