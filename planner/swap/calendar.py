"""The calendar planner: walk, run, trim, place, and give up a little memory until the offsets fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from planner.memory import SwapPlan
from planner.swap.draft import Draft
from planner.swap.finish import finish_draft, finish_placed
from planner.swap.orders import orders
from planner.swap.problem import Flags, Problem
from planner.swap.settle import Placed, settler
from planner.swap.steady import Walker, clock_of, walker
from planner.swap.timing import Timing, time_draft

#: Shares of memory left to the packing, in the order they are tried.
SLACK = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.10, 0.15, 0.20)
LEADS = (1.0, 2.0, 0.6)
BRIEF = (30, 100, 10)
_REPLANS = 3
_PINNED_SHARE = 0.03
_CLOSE = 1.0001

Progress = Callable[[float, str], None]


def calendar_plans(problem: Problem, progress: Progress) -> Iterator[SwapPlan]:
    """Plans of both kinds, packed and with addresses from the start.

    Args:
        problem: what is to be planned.
        progress: called with the share done and what is being done.
    """
    walkers = [walker(problem, order) for _, order in orders(problem)]
    packed = packed_plan(problem, walkers, progress)
    if packed is not None:
        yield packed
        if packed.predicted.seconds <= problem.ideal_seconds * _CLOSE:
            return
    progress(0.6, "placing while planning")
    found = sorted(addressed(walkers), key=lambda one: one[1].seconds)
    if found:
        yield finish_placed(problem, *found[0], "calendar")


def packed_plan(problem: Problem, walkers: list[Walker], progress: Progress) -> SwapPlan | None:
    """The fastest plan of the walks by bytes whose offsets fit, or None."""
    pinned = small_held(problem, _PINNED_SHARE)
    for trial, slack in enumerate(SLACK):
        progress(0.6 * trial / len(SLACK), f"planning with {slack:.0%} of the memory left to packing")
        memory = int(problem.memory * (1 - slack)) // problem.alignment * problem.alignment
        found = sorted(walked(walkers, memory, pinned), key=lambda one: one[1].seconds)
        if not found:
            return None
        for draft, timing in found[:3]:
            plan = finish_draft(problem, draft, timing, "calendar")
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


def walked(walkers: list[Walker], memory: int, pinned: Flags) -> Iterator[tuple[Draft, Timing]]:
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
                yield draft, timing
                if timing.seconds >= best / _CLOSE or timing.seconds <= ideal[-1] * _CLOSE:
                    break
                clock, best = timing.clock, timing.seconds


def addressed(walkers: list[Walker]) -> Iterator[tuple[Placed, Timing]]:
    """Walk every order with addresses."""
    for one in walkers:
        with_ground, clock = settler(one), clock_of(one.problem, one.order)
        for lead in LEADS:
            for brief in BRIEF:
                for carry in (True, False):
                    placed = with_ground.draft(clock, lead=lead, brief=brief, carry=carry)
                    if placed is not None:
                        yield placed, time_draft(one.problem, placed.draft)
                        break
