"""Prefetching: reloading storages as early as memory allows, once the absences are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.jit import kernel
from planner.swap.draft.absences import NEVER, Absences, first_absences
from planner.swap.draft.draft import UnplacedPlan, bytes_by_slot, unplaced_residencies
from planner.swap.problem.problem import Bytes, ProblemArrays


def prefetch_early(arrays: ProblemArrays, draft: UnplacedPlan, memory: int) -> UnplacedPlan:
    """A copy of an unplaced plan with every reload as early as `memory`, in bytes, allows."""
    absences = first_absences(draft.absences, len(draft.absences.storage))
    residencies = unplaced_residencies(arrays, draft.uses, draft.resident, absences, draft.reuses_buffer_of)
    prefetch_absences(arrays, absences, bytes_by_slot(arrays, residencies, len(draft.order)), memory)
    return replace(draft, absences=absences)


@kernel
def prefetch_absences(arrays: ProblemArrays, absences: Absences, bytes_held: Bytes, memory: int) -> None:
    """Move reloads to earlier slots, in order of the slots that need them.

    Args:
        arrays: the graph.
        absences: when storages are off the device; their reloads are changed.
        bytes_held: `[slots]`, bytes on the device in each slot; kept up to date.
        memory: bytes.
    """
    earliest = 0
    for k in np.argsort(absences.use, kind="mergesort"):
        if absences.reload[k] == NEVER:
            break
        size = arrays.bytes[absences.storage[k]]
        low = max(absences.release[k] + 1, earliest)
        q = absences.reload[k]
        while q > low and bytes_held[q - 1] + size <= memory:
            q -= 1
            bytes_held[q] += size
        absences.reload[k] = q
        earliest = max(earliest, q)
