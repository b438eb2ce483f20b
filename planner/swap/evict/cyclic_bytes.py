"""Walking until a step ends as it began, because training repeats it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from planner.swap.draft.absences import Gaps, blank_gaps, first_gaps
from planner.swap.draft.draft import Draft, leave_unused
from planner.swap.evict.bytes_pass import walk
from planner.swap.evict.state import Desk, Route, blank_desk
from planner.swap.problem.problem import Flags, Flow, Ints, Problem, Seconds
from planner.swap.problem.uses import Uses, uses_of
from planner.swap.schedule.required_reuse import needed_takeovers, touched_before

_MOST_WALKS = 100


@dataclass(frozen=True, eq=False)
class Walker:
    """Walks one order of a problem again and again, with other times, other memory and another start.

    Args:
        problem: what is planned.
        order, uses: the op in each slot, and when each storage is touched.
        flow, walked: the graph and those uses as walks see them: who has to be taken over is there in the slot before.
        taken: `[slots]`, who has to be taken over, or -1.
        work: `[storages]`, seconds each takes on the link when both directions are busy.
    """

    problem: Problem
    order: Ints
    uses: Uses
    flow: Flow
    walked: Uses
    taken: Ints
    work: Seconds
    gaps: Gaps = field(repr=False)
    desk: Desk = field(repr=False)

    def draft(
        self,
        clock: Seconds,
        memory: int,
        *,
        lead: float = 1.0,
        heed: bool = False,
        pinned: Flags,
        bias: Seconds | None = None,
        start: Flags | None = None,
    ) -> Draft | None:
        """Find who is away when, so that the storages on the device are the same at both ends of the step.

        Args:
            clock: `[slots + 1]`, when each slot is thought to begin, and the end.
            memory: aligned bytes, at most the problem's.
            lead: a reload is given this many times its work.
            heed: whether a storage stays whose copy out could not be done in time.
            pinned: `[storages]`, held storages that never leave.
            bias: `[storages]`, factor on the time until a storage's next use; above 1 leaves sooner.
            start: `[storages]`, held storages that may be on the device when the step starts, such as those of a draft
                that is much like this one; None to find out, which takes more walks.

        Returns:
            None where the bytes of some slot do not fit.

        Raises:
            Stopped: it was asked to stop.
        """
        problem, flow = self.problem, self.flow
        if bias is None:
            bias = np.ones(problem.storages)
        route = Route(self.order, flow, self.walked, clock, self.work, lead, heed, problem.stop.flag)
        inherits = np.empty(problem.ops, np.int32)
        stays = np.zeros(problem.storages, np.bool_)
        fleeting = flow.held & ~flow.stateful & (np.diff(self.uses.start) > 0)
        resident, found_out = pinned | fleeting, 0
        if start is not None:
            fleeting &= start
            resident, found_out = (start & flow.stateful) | pinned | fleeting, 2
        for attempt in range(found_out, _MOST_WALKS):
            count, stuck = walk(route, resident, pinned, memory, bias, self.gaps, inherits, stays, self.desk)
            problem.stop.check()
            if stuck >= 0:
                return None
            found = first_gaps(self.gaps, count)
            idle = leave_unused(self.uses, found, resident)
            if attempt and not idle.any() and not (resident & flow.stateful & ~stays).any():
                break
            fleeting &= ~idle
            if attempt < 2:
                resident = (stays & ~idle) | pinned | fleeting
            else:
                resident &= (stays | fleeting) & ~idle
        else:
            return None
        return Draft(self.order, self.uses, resident, found, inherits)


@dataclass(frozen=True, eq=False)
class Scratch:
    """What walks write to; one walk at a time may use it."""

    gaps: Gaps
    desk: Desk


def blank_scratch(problem: Problem) -> Scratch:
    """Scratch for walks along any order."""
    # at most one gap before each use and one at either end; who is taken over may count as touched once more
    gaps = blank_gaps(len(problem.flow.touches.items) + problem.ops + 2 * problem.storages)
    return Scratch(gaps, blank_desk(problem.ops, problem.storages, len(gaps.storage)))


def walker(problem: Problem, order: Ints, scratch: Scratch | None = None) -> Walker:
    """Prepare to walk an order, in scratch of its own or in that given."""
    copies = problem.copies
    sizes = np.array([storage.bytes for storage in problem.graph.storages], np.float64)
    work = (sizes / copies.bandwidth + copies.latency) / copies.shared
    scratch = scratch or blank_scratch(problem)
    uses = walked = uses_of(order, problem.flow)
    flow, taken = problem.flow, np.empty(problem.ops, np.int32)
    if needed_takeovers(order, flow, problem.memory, taken) >= 0:
        taken[:] = -1  # walks will find that it cannot be
    if (taken >= 0).any():
        flow = touched_before(flow, order, taken)
        walked = uses_of(order, flow)
        walked.donor[taken >= 0] = taken[taken >= 0]
    return Walker(problem, order, uses, flow, walked, taken, work, scratch.gaps, scratch.desk)


def clock_of(problem: Problem, order: Ints) -> Seconds:
    """`[slots + 1]`, when each slot would begin if no op ever waited."""
    return np.concatenate([[0.0], np.cumsum(problem.seconds[order])])
