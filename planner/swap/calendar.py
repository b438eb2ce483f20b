"""The calendar planner: walk, run, trim, place, and give up a little memory until the offsets fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from planner.memory.plan import SwapPlan
from planner.swap.assemble import assemble
from planner.swap.draft import Draft, stays_of
from planner.swap.orders import orders
from planner.swap.place import boxes_of, place
from planner.swap.problem import Flags, Problem
from planner.swap.steady import Walker, clock_of, walker
from planner.swap.timing import Timing, time_draft
from planner.swap.trim import trim

#: Shares of memory left to the packing, in the order they are tried.
SLACK = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.10, 0.15, 0.20)
LEADS = (1.0, 2.0, 0.6)
_REPLANS = 3
_PINNED_SHARE = 0.03


class Timed(NamedTuple):
    """A draft and its time."""

    draft: Draft
    timing: Timing


def calendar_plan(problem: Problem) -> SwapPlan | None:
    """The fastest plan the calendar walk finds whose offsets fit, or None.

    Args:
        problem: what is to be planned.
    """
    walkers = [walker(problem, order) for _, order in orders(problem)]
    pinned = small_held(problem, _PINNED_SHARE)
    for slack in SLACK:
        memory = int(problem.memory * (1 - slack)) // problem.alignment * problem.alignment
        found = sorted(drafts(walkers, memory, pinned), key=lambda timed: timed.timing.seconds)
        if not found:
            return None
        for timed in found[:3]:
            plan = finish(problem, timed)
            if plan is not None:
                return plan
    return None


def small_held(problem: Problem, share: float) -> Flags:
    """The smallest storages that live over steps, together at most a share of memory: swapping them gains nothing."""
    flow = problem.flow
    small = np.flatnonzero(flow.stateful & (flow.bytes > 0))
    small = small[np.argsort(flow.bytes[small], kind="stable")]
    pinned = np.zeros(problem.storages, np.bool_)
    pinned[small[np.cumsum(flow.bytes[small]) <= share * problem.memory]] = True
    return pinned


def drafts(walkers: list[Walker], memory: int, pinned: Flags) -> Iterator[Timed]:
    """Walk every order with every lead, and again with the times that came of it while that helps."""
    for one in walkers:
        ideal = clock_of(one.problem, one.order)
        for lead in LEADS:
            clock, best = ideal, np.inf
            for _ in range(_REPLANS):
                draft = one.draft(clock, memory, lead=lead, pinned=pinned)
                if draft is None:
                    break
                timing = time_draft(one.problem, draft)
                yield Timed(draft, timing)
                if timing.seconds >= best * 0.9999 or timing.seconds <= ideal[-1] * 1.0001:
                    break
                clock, best = timing.clock, timing.seconds


def finish(problem: Problem, timed: Timed) -> SwapPlan | None:
    """Trim a draft and place it within the budget, or None."""
    draft, timing = timed
    queues = (timing.outs, timing.ins)
    trim(draft.uses, draft.gaps, *queues, timing.compute, timing.out_spans, timing.in_spans)
    stays = stays_of(problem.flow, draft.uses, draft.resident, draft.gaps, draft.inherits)
    boxes = boxes_of(problem, draft, stays)
    offsets = place(boxes, problem.memory)
    if offsets is None:
        return None
    return assemble(problem, draft, stays, offsets[boxes.of], *queues, "calendar")
