"""Offloading by fixed rules: only what the forward pass saves for the backward pass is swapped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.graph import Phase
from planner.plan import SwapPlan
from planner.swap.draft.absences import Absences
from planner.swap.draft.draft import UnplacedPlan, bytes_by_slot, unplaced_residencies
from planner.swap.emit.place_and_assemble import finish_draft
from planner.swap.problem.problem import Flags, Ints, Problem
from planner.swap.problem.uses import Uses, uses_of
from planner.swap.schedule.base_orders import captured
from planner.swap.simulate.draft_timing import time_draft

#: How many ops ahead of its use a storage is reloaded, and how many a copy out may take.
_PREFETCH_OPS = (1, 4, 16, 64, 256)
_PACK_ATTEMPTS = 3


def save_on_cpu_plan(problem: Problem) -> SwapPlan | None:
    """Evict everything saved for backward after its last forward use; reload it right before its first backward use.

    This is what PyTorch's `torch.autograd.graph.save_on_cpu` does, which never looks ahead. None if that does not fit.
    """
    draft = _offloaded(problem, _saved(problem), np.ones(problem.storages, np.bool_), 0)
    if not _fits(problem, draft):
        return None
    return finish_draft(problem, draft, time_draft(problem, draft), "save-on-cpu")


def tflms_plan(problem: Problem) -> SwapPlan | None:
    """Evict activations whose backward use is at least so many ops away, and reload them so many ops ahead of it.

    The rule of TensorFlow Large Model Support (Le et al., TFLMS, arXiv 1807.02037), whose two numbers the user sets:
    here both are swept, and the fastest plan that fits is kept. None if none fits.
    """
    saved = _saved(problem)
    distance = saved.first_late - saved.last_early
    found = []
    for threshold in _thresholds(problem.ops, int(distance.max(initial=0))):
        for prefetch_ops in _PREFETCH_OPS:
            problem.stop.check()
            draft = _offloaded(problem, saved, distance >= threshold, prefetch_ops)
            if _fits(problem, draft):
                found.append((time_draft(problem, draft), draft))
    found.sort(key=lambda one: one[0].seconds)
    for timing, draft in found[:_PACK_ATTEMPTS]:
        plan = finish_draft(problem, draft, timing, "tflms")
        if plan is not None:
            return plan
    return None


def _thresholds(ops: int, longest: int) -> list[int]:
    """Least distances in ops, from 2 up to nearly the longest, in sixteenths of the longest."""
    return sorted({max(2, longest * k // 16) for k in range(16)} | {2, min(8, ops)})


@dataclass(frozen=True, eq=False)
class _Saved:
    """What the forward pass saves for the backward pass in the captured order.

    Args:
        order, uses: that order, and the uses of storages in it.
        last_early, first_late: per storage, the slots of its last forward use and of the first use after; both 0 if it
            is not saved.
    """

    order: Ints
    uses: Uses
    last_early: Ints
    first_late: Ints


def _saved(problem: Problem) -> _Saved:
    order = captured(problem)
    uses = uses_of(order, problem.arrays)
    forward = np.array([op.phase is Phase.FORWARD for op in problem.graph.ops], np.bool_)
    storages = np.repeat(np.arange(problem.storages), np.diff(uses.start))
    last, first = np.full(problem.storages, -1, np.int32), np.full(problem.storages, problem.ops, np.int32)
    early = forward[uses.slot]
    np.maximum.at(last, storages[early], uses.slot[early])
    late = ~early & (uses.slot > last[storages])
    np.minimum.at(first, storages[late], uses.slot[late])
    created = ~problem.arrays.live_in & (last >= 0) & (first < problem.ops)
    return _Saved(order, uses, np.where(created, last, 0), np.where(created, first, 0))


def _offloaded(problem: Problem, saved: _Saved, chosen: Flags, prefetch_ops: int) -> UnplacedPlan:
    uses, last, first = saved.uses, saved.last_early, saved.first_late
    moved = chosen & (first - last >= 2)
    storage = np.flatnonzero(moved).astype(np.int32)
    begin, use = last[storage], first[storage]
    release = np.minimum(begin + 1 + prefetch_ops, use - 1).astype(np.int32)
    reload = np.maximum(use - prefetch_ops, release + 1).astype(np.int32)
    absences = Absences(storage, begin, release, reload, use, np.ones(len(storage), np.bool_))
    reuses_buffer_of = uses.reused_buffer.copy()
    # a buffer that is reloaded for a slot is not reused in it
    slots = np.flatnonzero(reuses_buffer_of >= 0)
    reused = reuses_buffer_of[slots]
    reuses_buffer_of[slots[moved[reused] & (first[reused] == slots)]] = -1
    return UnplacedPlan(saved.order, uses, problem.arrays.live_in.copy(), absences, reuses_buffer_of)


def _fits(problem: Problem, draft: UnplacedPlan) -> bool:
    """Whether anything is swapped and the bytes of every slot fit."""
    residencies = unplaced_residencies(
        problem.arrays, draft.uses, draft.resident, draft.absences, draft.reuses_buffer_of
    )
    peak = int(bytes_by_slot(problem.arrays, residencies, problem.ops).max(initial=0))
    return len(draft.absences.storage) > 0 and peak <= problem.memory
