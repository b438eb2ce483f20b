"""Offsets in host memory of storages that are off the device."""

from __future__ import annotations

import numpy as np

from planner.memory import pack
from planner.plan import HostResidency
from planner.swap.draft.absences import NEVER
from planner.swap.draft.draft import UnplacedPlan
from planner.swap.problem.problem import Problem


def host_residencies(problem: Problem, draft: UnplacedPlan) -> list[HostResidency]:
    """Lay out the host slab: live-in storages keep their offset for the whole step, others while a copy is of use."""
    arrays, n, absences = problem.arrays, problem.ops, draft.absences
    spans: dict[int, tuple[int, int]] = {}
    for s, ready, reload, use in zip(
        absences.storage.tolist(), absences.ready.tolist(), absences.reload.tolist(), absences.use.tolist(), strict=True
    ):
        if arrays.live_in[s]:
            spans[s] = (-1, n)
        else:
            start, stop = spans.get(s, (ready, ready))
            spans[s] = (start, max(stop, n if reload == NEVER else use))
    untouched = (np.diff(draft.uses.start) == 0) & ~draft.resident
    for s in np.flatnonzero(arrays.live_in & arrays.live_out & untouched & (arrays.bytes > 0)).tolist():
        spans[s] = (-1, n)  # returned unchanged, and never on the device
    storages = sorted(spans)
    lower = np.array([spans[s][0] for s in storages], np.int32)
    upper = np.array([spans[s][1] for s in storages], np.int32)
    sizes = arrays.bytes[np.array(storages, np.int64)]
    offsets = pack(lower, upper, sizes, rounds=0, stop=problem.stop).offsets.tolist()
    return [HostResidency(s, *spans[s], offset) for s, offset in zip(storages, offsets, strict=True)]
