"""Swapping on demand: storages are copied in when an op waits for them, and the least recently used are evicted.

And the same evictions with hindsight: the second step knows what the first did, so every copy may run ahead.
"""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from planner.jit import kernel
from planner.plan import SwapPlan
from planner.swap.draft.absences import NEVER, Absences, first_absences
from planner.swap.draft.draft import UnplacedResidencies, unplaced_residencies
from planner.swap.draft.tighten_residencies import tighten_residencies
from planner.swap.emit.place_and_assemble import finish_placed
from planner.swap.evict.cyclic_addresses import PlacedPlan, address_pass
from planner.swap.evict.cyclic_bytes import bytes_pass, clock_of
from planner.swap.evict.state import ON_DEVICE
from planner.swap.problem.problem import Bytes, Ints, Problem
from planner.swap.problem.uses import Uses
from planner.swap.schedule.base_orders import captured
from planner.swap.schedule.budget_feasibility import fitting_order
from planner.swap.simulate.draft_timing import Timing, time_draft

#: Least share of the step that keeping storages on the device across steps must save to be worth more passes.
_LEAST_GAIN = 0.01
_REPLAY_ROUNDS = 3

_placed_plans: WeakKeyDictionary[Problem, list[PlacedPlan]] = WeakKeyDictionary()


def on_demand_plan(problem: Problem) -> SwapPlan | None:
    """Copy in what an op waits for when it waits for it, evict the least recently used first, in captured order.

    A plan exists if the storages of each op alone fit; if some do not, it has an order in which they reuse buffers.
    """
    plans = (
        finish_placed(problem, placed, time_draft(problem, placed.draft), "on-demand") for placed in _evictions(problem)
    )
    return min(plans, key=lambda plan: plan.predicted.seconds, default=None)


def lru_prefetch_plan(problem: Problem) -> SwapPlan | None:
    """The evictions and addresses of on-demand swapping, with copies as early as control edges and memory allow.

    A copy out waits only for the last use before it, and a copy in only until its bytes are free: what SwapAdvisor
    (ASPLOS 2020, section 6.1) calls ODSwap, on-demand swapping that replays its first step as prefetch.
    """
    best: tuple[PlacedPlan, Timing] | None = None
    for placed in map(_copied, _evictions(problem)):
        draft = placed.draft
        _copy_out_after_last_use(draft.uses, draft.absences)
        for _ in range(_REPLAY_ROUNDS):  # bytes are freed earlier once it is known when the copies out are done
            residencies = unplaced_residencies(
                problem.arrays, draft.uses, draft.resident, draft.absences, draft.reuses_buffer_of
            )
            _prefetch(residencies, placed.offsets, problem.arrays.bytes, draft.absences)
            timing = time_draft(problem, draft)
            if best is None or timing.seconds < best[1].seconds:
                best = _copied(placed), timing
            tighten_residencies(
                draft.uses, draft.absences, draft.reuses_buffer_of, timing.outs, timing.ins,
                timing.compute, timing.out_spans, timing.in_spans,
            )  # fmt: skip
    return None if best is None else finish_placed(problem, *best, "lru-prefetch")


def _evictions(problem: Problem) -> list[PlacedPlan]:
    """On-demand evictions with nothing kept on the device from one step to the next, and with something kept."""
    if problem not in _placed_plans:
        order = fitting_order(problem)
        by_bytes = bytes_pass(problem, captured(problem) if order is None else order)
        by_address, clock = address_pass(by_bytes), clock_of(problem, by_bytes.order)
        placed_plans = [by_address.draft(clock, on_demand=True)]
        if placed_plans[0] is not None:
            persistent_bytes = int(
                problem.arrays.bytes[problem.arrays.persistent & (by_bytes.eviction.state == ON_DEVICE)].sum()
            )
            saved_seconds = 2 * persistent_bytes / problem.link.bandwidth  # each saves a copy in both directions
            if saved_seconds > _LEAST_GAIN * time_draft(problem, placed_plans[0].draft).seconds:
                placed_plans.append(
                    by_address.draft(clock, on_demand=True, always_resident=np.zeros(problem.storages, np.bool_))
                )
        _placed_plans[problem] = [placed for placed in placed_plans if placed is not None]
    return _placed_plans[problem]


def _copied(placed: PlacedPlan) -> PlacedPlan:
    """The same plan, with absences that may be modified."""
    absences = placed.draft.absences
    return replace(placed, draft=replace(placed.draft, absences=first_absences(absences, len(absences.storage))))


@kernel
def _copy_out_after_last_use(uses: Uses, absences: Absences) -> None:
    """Let every copy out begin as soon as the last use before it is done."""
    for k in range(absences.storage.shape[0]):
        s = absences.storage[k]
        slots = uses.slot[uses.start[s] : uses.start[s + 1]]
        c = np.searchsorted(slots, absences.release[k])
        if absences.copy[k]:
            absences.ready[k] = slots[c - 1] if c > 0 else -1


def _prefetch(residencies: UnplacedResidencies, offsets: Bytes, sizes: Bytes, absences: Absences) -> None:
    """Let every copy in begin as soon as the previous owners have left its bytes."""
    bounds = np.unique(np.concatenate([offsets, offsets + sizes[residencies.storage]]))
    first = np.searchsorted(bounds, offsets).astype(np.int32)
    after = np.searchsorted(bounds, offsets + sizes[residencies.storage]).astype(np.int32)
    by_start = np.lexsort((residencies.stop, residencies.start)).astype(np.int32)
    # an absence ends with the residency of its storage that begins at its reload
    residency_at = {
        key: r for r, key in enumerate(zip(residencies.storage.tolist(), residencies.start.tolist(), strict=True))
    }
    absence_before = np.full(len(offsets), -1, np.int32)
    for k, key in enumerate(zip(absences.storage.tolist(), absences.reload.tolist(), strict=True)):
        if key[1] != NEVER:
            absence_before[residency_at[key]] = k
    _reload_early(by_start, first, after, residencies.stop, absence_before, absences, len(bounds))


@kernel
def _reload_early(
    by_start: Ints, first: Ints, after: Ints, stop: Ints, absence_before: Ints, absences: Absences, bounds: int
) -> None:
    freed_slot = np.zeros(bounds, np.int32)  # the slot in which the last owner of the bytes between two bounds is gone
    for r in by_start:
        free = 0
        for b in range(first[r], after[r]):
            free = max(free, freed_slot[b])
            freed_slot[b] = stop[r]
        k = absence_before[r]
        if k >= 0:
            absences.reload[k] = min(absences.reload[k], max(free, absences.release[k]))
