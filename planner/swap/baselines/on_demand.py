"""Swapping on demand: what an op waits for moves when it waits for it, and the least recently used leaves.

And the same evictions with hindsight: on the second step one knows what the first did, so every copy may run ahead.
"""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from planner.kernels import kernel
from planner.plan import SwapPlan
from planner.swap.draft.absences import NEVER, Gaps, first_gaps
from planner.swap.draft.draft import Stays, stays_of
from planner.swap.draft.tighten import trim
from planner.swap.emit.finish import finish_placed
from planner.swap.evict.cyclic_addresses import Placed, settler
from planner.swap.evict.cyclic_bytes import clock_of, walker
from planner.swap.evict.state import HERE
from planner.swap.problem.problem import Bytes, Ints, Problem
from planner.swap.problem.uses import Uses
from planner.swap.schedule.feasibility import fitting_order
from planner.swap.schedule.list_scheduling import captured
from planner.swap.simulate.draft_timing import Timing, time_draft

#: Below this share of the step, what could stay on the device over the step's end is not worth the walks to find out.
_WORTH = 0.01
_REPLAYS = 3

_walked: WeakKeyDictionary[Problem, list[Placed]] = WeakKeyDictionary()


def on_demand_plan(problem: Problem) -> SwapPlan | None:
    """Swap what an op waits for when it waits for it, least recently used first, in captured order.

    Exists whenever the storages of each op alone fit; where some do not, in an order in which they take over others.
    """
    plans = (finish_placed(problem, own, time_draft(problem, own.draft), "on-demand") for own in _evictions(problem))
    return min(plans, key=lambda plan: plan.predicted.seconds, default=None)


def lru_prefetch_plan(problem: Problem) -> SwapPlan | None:
    """The evictions and addresses of on-demand swapping, every copy as early as control edges and memory allow.

    A copy out waits only for the last use before it, and a copy in only until its bytes are free: what SwapAdvisor
    (ASPLOS 2020, section 6.1) calls ODSwap, on-demand swapping that replays its first step as prefetch.
    """
    best: tuple[Placed, Timing] | None = None
    for placed in map(_copied, _evictions(problem)):
        draft = placed.draft
        _after_last_use(draft.uses, draft.gaps)
        for _ in range(_REPLAYS):  # bytes are left earlier once it is known when the copies out are done
            stays = stays_of(problem.flow, draft.uses, draft.resident, draft.gaps, draft.inherits)
            _ahead(stays, placed.offsets, problem.flow.bytes, draft.gaps)
            timing = time_draft(problem, draft)
            if best is None or timing.seconds < best[1].seconds:
                best = _copied(placed), timing
            trim(
                draft.uses, draft.gaps, draft.inherits, timing.outs, timing.ins,
                timing.compute, timing.out_spans, timing.in_spans,
            )  # fmt: skip
    return None if best is None else finish_placed(problem, *best, "lru-prefetch")


def _evictions(problem: Problem) -> list[Placed]:
    """What on-demand swapping does where nothing stays from one step to the next, and where something does."""
    if problem not in _walked:
        order = fitting_order(problem)
        one = walker(problem, captured(problem) if order is None else order)
        with_ground, clock = settler(one), clock_of(problem, one.order)
        found = [with_ground.draft(clock, on_demand=True)]
        if found[0] is not None:
            could_stay = int(problem.flow.bytes[problem.flow.stateful & (one.desk.state == HERE)].sum())
            saved = 2 * could_stay / problem.copies.bandwidth  # each spares a copy either way
            if saved > _WORTH * time_draft(problem, found[0].draft).seconds:
                found.append(with_ground.draft(clock, on_demand=True, anchored=np.zeros(problem.storages, np.bool_)))
        _walked[problem] = [placed for placed in found if placed is not None]
    return _walked[problem]


def _copied(placed: Placed) -> Placed:
    """The same, with gaps that may be changed."""
    gaps = placed.draft.gaps
    return replace(placed, draft=replace(placed.draft, gaps=first_gaps(gaps, len(gaps.storage))))


@kernel
def _after_last_use(uses: Uses, gaps: Gaps) -> None:
    """Let every copy out begin when the last use before it is done."""
    for k in range(gaps.storage.shape[0]):
        s = gaps.storage[k]
        slots = uses.slot[uses.start[s] : uses.start[s + 1]]
        c = np.searchsorted(slots, gaps.release[k])
        if gaps.copy[k]:
            gaps.ready[k] = slots[c - 1] if c > 0 else -1


def _ahead(stays: Stays, offsets: Bytes, sizes: Bytes, gaps: Gaps) -> None:
    """Let every copy in begin when its bytes have been left by whoever had them before."""
    bounds = np.unique(np.concatenate([offsets, offsets + sizes[stays.storage]]))
    first = np.searchsorted(bounds, offsets).astype(np.int32)
    after = np.searchsorted(bounds, offsets + sizes[stays.storage]).astype(np.int32)
    by_start = np.lexsort((stays.stop, stays.start)).astype(np.int32)
    # a gap ends with the stay of its storage that begins where its reload does
    where = {key: r for r, key in enumerate(zip(stays.storage.tolist(), stays.start.tolist(), strict=True))}
    follows = np.full(len(offsets), -1, np.int32)
    for k, key in enumerate(zip(gaps.storage.tolist(), gaps.reload.tolist(), strict=True)):
        if key[1] != NEVER:
            follows[where[key]] = k
    _pull(by_start, first, after, stays.stop, follows, gaps, len(bounds))


@kernel
def _pull(by_start: Ints, first: Ints, after: Ints, stop: Ints, follows: Ints, gaps: Gaps, bounds: int) -> None:
    left = np.zeros(bounds, np.int32)  # the slot in which the last owner of the bytes between two bounds is gone
    for r in by_start:
        free = 0
        for b in range(first[r], after[r]):
            free = max(free, left[b])
            left[b] = stop[r]
        k = follows[r]
        if k >= 0:
            gaps.reload[k] = min(gaps.reload[k], max(free, gaps.release[k]))
