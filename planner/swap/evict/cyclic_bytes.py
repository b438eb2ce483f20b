"""Cyclic schedules by bytes: passes repeat until the step ends with the residents it starts with, as training needs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from planner.swap.draft.absences import Absences, blank_absences, first_absences
from planner.swap.draft.draft import UnplacedPlan, evicted_before_use
from planner.swap.evict.bytes_pass import evict_by_bytes
from planner.swap.evict.state import EvictionInputs, EvictionState, blank_eviction_state
from planner.swap.problem.problem import Flags, Ints, Problem, ProblemArrays, Seconds
from planner.swap.problem.uses import Uses, uses_of
from planner.swap.schedule.required_reuse import required_reuses, touched_before

_MAX_PASSES = 100


@dataclass(frozen=True, eq=False)
class BytesPass:
    """Runs eviction passes over one order of a problem, with varying times, memory and initial residents.

    Args:
        problem: what is planned.
        order, uses: the op in each slot, and when each storage is touched.
        arrays, pass_uses: the graph and its uses as the passes see them: a storage whose buffer must be reused counts
            as touched in the slot before.
        required_reuse: `[slots]`, the storage whose buffer must be reused, or -1.
        work: `[storages]`, seconds each takes on the link when both directions are busy.
        absences, eviction: scratch of the passes.
    """

    problem: Problem
    order: Ints
    uses: Uses
    arrays: ProblemArrays
    pass_uses: Uses
    required_reuse: Ints
    work: Seconds
    absences: Absences = field(repr=False)
    eviction: EvictionState = field(repr=False)

    def draft(
        self,
        clock: Seconds,
        memory: int,
        *,
        lead: float = 1.0,
        avoid_late_copies: bool = False,
        always_resident: Flags,
        bias: Seconds | None = None,
        initial_residents: Flags | None = None,
    ) -> UnplacedPlan | None:
        """Find absences such that the same storages are on the device at both ends of the step.

        Args:
            clock: `[slots + 1]`, when each slot is estimated to begin, and the end, in seconds.
            memory: aligned bytes, at most the problem's.
            lead: a reload is given this many times its work.
            avoid_late_copies: whether a storage whose copy out could not be done in time stays if another can leave.
            always_resident: `[storages]`, live-in storages that never leave.
            bias: `[storages]`, factor on the time until a storage's next use; above 1 leaves sooner.
            initial_residents: `[storages]`, live-in storages that may be on the device when the step starts, such as
                those of a similar unplaced plan; None to search for them, which takes more passes.

        Returns:
            The unplaced plan; None if the bytes of some slot do not fit, or no cyclic schedule is found.

        Raises:
            Cancelled: cancellation was requested.
        """
        problem, arrays = self.problem, self.arrays
        if bias is None:
            bias = np.ones(problem.storages)
        inputs = EvictionInputs(
            self.order, arrays, self.pass_uses, clock, self.work, lead, avoid_late_copies, problem.stop.flag
        )
        reuses_buffer_of = np.empty(problem.ops, np.int32)
        resident_at_end = np.zeros(problem.storages, np.bool_)
        temporary = arrays.live_in & ~arrays.persistent & (np.diff(self.uses.start) > 0)
        resident, first_attempt = always_resident | temporary, 0
        if initial_residents is not None:
            temporary &= initial_residents
            resident, first_attempt = (initial_residents & arrays.persistent) | always_resident | temporary, 2
        for attempt in range(first_attempt, _MAX_PASSES):
            count, failed_slot = evict_by_bytes(
                inputs,
                resident,
                always_resident,
                memory,
                bias,
                self.absences,
                reuses_buffer_of,
                resident_at_end,
                self.eviction,
            )
            problem.stop.check()
            if failed_slot >= 0:
                return None
            absences = first_absences(self.absences, count)
            unused = evicted_before_use(self.uses, absences, resident)
            if attempt and not unused.any() and not (resident & arrays.persistent & ~resident_at_end).any():
                break
            temporary &= ~unused
            if attempt < 2:
                resident = (resident_at_end & ~unused) | always_resident | temporary
            else:
                resident &= (resident_at_end | temporary) & ~unused
        else:
            return None
        return UnplacedPlan(self.order, self.uses, resident, absences, reuses_buffer_of)


@dataclass(frozen=True, eq=False)
class EvictionScratch:
    """What eviction passes write to; one pass at a time may use it."""

    absences: Absences
    eviction: EvictionState


def blank_eviction_scratch(problem: Problem) -> EvictionScratch:
    """Scratch for eviction passes over any order."""
    # at most one absence before each use and one at either end; a required reuse may add a touch per slot
    absences = blank_absences(len(problem.arrays.touches.items) + problem.ops + 2 * problem.storages)
    return EvictionScratch(absences, blank_eviction_state(problem.ops, problem.storages, len(absences.storage)))


def bytes_pass(problem: Problem, order: Ints, scratch: EvictionScratch | None = None) -> BytesPass:
    """Prepare eviction passes over an order, in the scratch given or in new scratch."""
    link = problem.link
    work = (problem.sizes / link.bandwidth + link.latency) / link.shared
    scratch = scratch or blank_eviction_scratch(problem)
    uses = pass_uses = uses_of(order, problem.arrays)
    arrays, required_reuse = problem.arrays, np.empty(problem.ops, np.int32)
    if required_reuses(order, arrays, problem.memory, required_reuse) >= 0:
        required_reuse[:] = -1  # the passes report that it does not fit
    if (required_reuse >= 0).any():
        arrays = touched_before(arrays, order, required_reuse)
        pass_uses = uses_of(order, arrays)
        pass_uses.reused_buffer[required_reuse >= 0] = required_reuse[required_reuse >= 0]
    return BytesPass(problem, order, uses, arrays, pass_uses, required_reuse, work, scratch.absences, scratch.eviction)


def clock_of(problem: Problem, order: Ints) -> Seconds:
    """`[slots + 1]`, when each slot would begin if no op ever waited, in seconds."""
    return np.concatenate([[0.0], np.cumsum(problem.seconds[order])])
