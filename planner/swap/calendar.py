"""The calendar planner: walk, run, trim, place, and give up a little memory until the offsets fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from time import perf_counter
from typing import NamedTuple

import numpy as np

from planner.memory import SwapPlan
from planner.swap.draft import Draft
from planner.swap.finish import finish_draft, finish_placed
from planner.swap.orders import orders
from planner.swap.prefetch import prefetched
from planner.swap.problem import Flags, Problem, Seconds
from planner.swap.settle import Placed, settler
from planner.swap.steady import Walker, clock_of, walker
from planner.swap.timing import Timing, time_draft

Progress = Callable[[float, str], None]

#: How many times its own work a reload is given; what is best depends on how full the link is.
LEADS = (1.0, 1.25, 1.5, 0.8, 2.0, 0.6)
#: Storages that live for fewer slots than this are kept apart by the address walk.
BRIEF = (30, 100, 10)
#: Share of memory whose smallest persistent storages never leave: swapping them gains nothing and costs many walks.
_PINNED_SHARE = 0.03
_TRIALS = 8
_KEPT = 6
_REPLANNED = 2
_AS_FAST = 1.002
_STEP = 0.998
_CLOSE = 1.0001
_SHARE_OF_TRIALS = 0.7


class Way(NamedTuple):
    """A way to walk: an order, a lead, and whether copies out must be done in time."""

    walker: Walker
    lead: float
    heed: bool


class Walked(NamedTuple):
    """What came of walking a way; `early` says whether reloads were then moved as early as memory allows."""

    way: Way
    early: bool
    draft: Draft
    timing: Timing


@dataclass(eq=False)
class CalendarSearch:
    """Looks for fast plans with the calendar walk until it meets the bound, has tried everything, or time is up.

    Args:
        problem: what is to be planned.
        bound: seconds that no plan goes below; a plan that comes close ends the search.
        progress: called with the share done and what is being done.
        deadline: `time.perf_counter()` after which nothing new is tried.
        bias: `[storages]`, factor on the time of each one's next use; above 1 leaves sooner.
        evaluations: how many drafts have been timed.
    """

    problem: Problem
    bound: float
    progress: Progress
    deadline: float
    bias: Seconds
    evaluations: int = 0
    pinned: Flags = field(init=False)

    def __post_init__(self) -> None:
        self.pinned = small_held(self.problem)

    def plans(self) -> Iterator[SwapPlan]:
        """Plans of both kinds: walked by bytes and then packed, and walked with addresses; each a better one."""
        problem = self.problem
        walkers = [walker(problem, order) for _, order in orders(problem)]
        ways = [Way(one, lead, heed) for lead in LEADS for one in walkers for heed in (True, False)]
        memory, best = problem.memory, np.inf
        for trial in range(_TRIALS):
            left = 1 - memory / problem.memory
            self.progress(_SHARE_OF_TRIALS * trial / _TRIALS, f"planning with {left:.1%} of the memory left to packing")
            found = sorted(self._walked(ways, memory), key=lambda one: one.timing.seconds)
            ways = list(dict.fromkeys(one.way for one in found))[:_KEPT] or ways
            too_high = []
            for one in self._worth_packing(found):
                if one.timing.seconds >= best / _CLOSE:
                    break
                plan, height = finish_draft(problem, one.draft, one.timing, "calendar")
                if plan is None:
                    too_high.append(height)
                else:
                    best = plan.predicted.seconds
                    yield plan
            if not too_high or self._done(best):
                break
            # where packing overshoots, the next walks get that much less memory and a little less again
            memory = int(_STEP * memory * problem.memory / min(too_high)) // problem.alignment * problem.alignment
        if not self._done(best):
            self.progress(_SHARE_OF_TRIALS, "placing while planning")
            fastest = min(self._addressed(ways), key=lambda one: one[1].seconds, default=None)
            if fastest is not None and fastest[1].seconds < best:
                yield finish_placed(problem, *fastest, "calendar")

    def _worth_packing(self, found: list[Walked]) -> list[Walked]:
        """The fastest with and without prefetching; of two that are as fast, the one that leaves memory empty first."""
        lazy = [one for one in found if not one.early][:1]
        early = [one for one in found if one.early][:1]
        if lazy and early and early[0].timing.seconds < lazy[0].timing.seconds / _AS_FAST:
            return early + lazy
        return lazy + early

    def _done(self, best: float) -> bool:
        return best <= self.bound * _CLOSE or perf_counter() > self.deadline

    def _walked(self, ways: list[Way], memory: int) -> Iterator[Walked]:
        """Walk every way, and the fastest ones again with the times that came of it."""
        found: list[Walked] = []
        ideal = [(way, clock_of(self.problem, way.walker.order)) for way in ways]
        for way, clock in chain(ideal, _fastest(found)):
            draft = way.walker.draft(clock, memory, lead=way.lead, heed=way.heed, pinned=self.pinned, bias=self.bias)
            if draft is None:
                continue
            for early in (False, True):
                tried = prefetched(self.problem.flow, draft, memory) if early else draft
                found.append(Walked(way, early, tried, time_draft(self.problem, tried)))
                self.evaluations += 1
                yield found[-1]
                if self._done(found[-1].timing.seconds):
                    return

    def _addressed(self, ways: list[Way]) -> Iterator[tuple[Placed, Timing]]:
        """Walk every way with addresses."""
        for one, lead in dict.fromkeys((way.walker, way.lead) for way in ways):
            with_ground, clock = settler(one), clock_of(self.problem, one.order)
            for brief in BRIEF:
                for anchored in (self.pinned, None):
                    placed = with_ground.draft(clock, lead=lead, brief=brief, anchored=anchored)
                    if placed is not None:
                        timing = time_draft(self.problem, placed.draft)
                        self.evaluations += 1
                        yield placed, timing
                        if self._done(timing.seconds):
                            return
                        break


def small_held(problem: Problem) -> Flags:
    """The smallest storages that live over steps, together at most a small share of memory."""
    flow = problem.flow
    small = np.intersect1d(np.flatnonzero(flow.stateful), flow.touches.items)
    small = small[np.argsort(flow.bytes[small], kind="stable")]
    pinned = np.zeros(problem.storages, np.bool_)
    pinned[small[np.cumsum(flow.bytes[small]) <= _PINNED_SHARE * problem.memory]] = True
    return pinned


def _fastest(found: list[Walked]) -> Iterator[tuple[Way, Seconds]]:
    """The ways that were fastest by the time one asks, each with the times that came of it."""
    for one in sorted(found, key=lambda one: one.timing.seconds)[:_REPLANNED]:
        yield one.way, one.timing.clock
