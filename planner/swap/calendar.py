"""The calendar planner: walk, run, trim, place, and give up a little memory until the offsets fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from planner.memory import SwapPlan
from planner.swap.draft import Draft
from planner.swap.finish import finish_draft, finish_placed
from planner.swap.orders import orders
from planner.swap.problem import Flags, Problem
from planner.swap.settle import Placed, settler
from planner.swap.steady import Walker, clock_of, walker
from planner.swap.timing import Timing, time_draft

Progress = Callable[[float, str], None]

#: How many times its own work a reload is given; what is best depends on how full the link is.
LEADS = (1.0, 2.0, 0.6)
#: Storages that live for fewer slots than this are kept apart by the address walk.
BRIEF = (30, 100, 10)
#: Share of memory whose smallest persistent storages never leave: swapping them gains nothing and costs many walks.
_PINNED_SHARE = 0.03
_REPLANS = 3
_TRIALS = 8
_KEPT = 4
_PACKED = 2
_CLOSE = 1.0001


class Way(NamedTuple):
    """A way to walk: an order and a lead."""

    walker: Walker
    lead: float


def calendar_plans(problem: Problem, bound: float, progress: Progress) -> Iterator[SwapPlan]:
    """Plans of both kinds: walked by bytes and then packed, and walked with addresses.

    Args:
        problem: what is to be planned.
        bound: seconds that no plan goes below; a plan that comes close ends the search.
        progress: called with the share done and what is being done.
    """
    pinned = small_held(problem)
    ways = [Way(walker(problem, order), lead) for _, order in orders(problem) for lead in LEADS]
    memory, best = problem.memory, np.inf
    for trial in range(_TRIALS):
        left = 1 - memory / problem.memory
        progress(0.7 * trial / _TRIALS, f"planning with {left:.1%} of the memory left to packing")
        found = sorted(walked(ways, memory, pinned, bound), key=lambda one: one[2].seconds)
        ways = list(dict.fromkeys(way for way, _, _ in found))[:_KEPT] or ways
        heights = []
        for _, draft, timing in found[:_PACKED]:
            if timing.seconds < best / _CLOSE:
                plan, height = finish_draft(problem, draft, timing, "calendar")
                heights.append(height)
                if plan is not None:
                    yield plan
                    best = plan.predicted.seconds
        if not heights or heights[0] <= problem.memory:
            break
        # where packing overshoots, the next walks get that much less memory
        overshoot = min(height for height in heights if height > problem.memory) / problem.memory
        memory = int(memory / overshoot) // problem.alignment * problem.alignment
    if best > bound * _CLOSE:
        progress(0.7, "placing while planning")
        placed = min(addressed(ways, pinned, bound), key=lambda one: one[1].seconds, default=None)
        if placed is not None:
            yield finish_placed(problem, *placed, "calendar")


def small_held(problem: Problem) -> Flags:
    """The smallest storages that live over steps, together at most a small share of memory."""
    flow = problem.flow
    small = np.flatnonzero(flow.stateful & (flow.bytes > 0))
    small = small[np.argsort(flow.bytes[small], kind="stable")]
    pinned = np.zeros(problem.storages, np.bool_)
    pinned[small[np.cumsum(flow.bytes[small]) <= _PINNED_SHARE * problem.memory]] = True
    return pinned


def walked(ways: Iterable[Way], memory: int, pinned: Flags, bound: float) -> Iterator[tuple[Way, Draft, Timing]]:
    """Walk every way, and again with the times that came of it while that helps, until one comes close to the bound."""
    for way in ways:
        one = way.walker
        clock, best = clock_of(one.problem, one.order), np.inf
        for _ in range(_REPLANS):
            draft = one.draft(clock, memory, lead=way.lead, pinned=pinned)
            if draft is None:
                break
            timing = time_draft(one.problem, draft)
            yield way, draft, timing
            if timing.seconds <= bound * _CLOSE:
                return
            if timing.seconds >= best / _CLOSE:
                break
            clock, best = timing.clock, timing.seconds


def addressed(ways: Iterable[Way], pinned: Flags, bound: float) -> Iterator[tuple[Placed, Timing]]:
    """Walk every way with addresses, until one comes close to the bound."""
    for way in ways:
        with_ground, clock = settler(way.walker), clock_of(way.walker.problem, way.walker.order)
        for brief in BRIEF:
            for anchored in (pinned, None):
                placed = with_ground.draft(clock, lead=way.lead, brief=brief, anchored=anchored)
                if placed is not None:
                    timing = time_draft(way.walker.problem, placed.draft)
                    yield placed, timing
                    if timing.seconds <= bound * _CLOSE:
                        return
                    break
