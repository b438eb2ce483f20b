"""Where storages lie in host memory while they are away."""

from __future__ import annotations

import numpy as np

from planner.memory import pack
from planner.plan import HostResidency
from planner.swap.draft.absences import NEVER
from planner.swap.draft.draft import Draft
from planner.swap.problem.problem import Problem


def host_residencies(problem: Problem, draft: Draft) -> list[HostResidency]:
    """Lay out the host slab: what lives over steps has its place for good, the rest while a copy is of use."""
    flow, n, gaps = problem.flow, problem.ops, draft.gaps
    spans: dict[int, tuple[int, int]] = {}
    for s, ready, reload, use in zip(
        gaps.storage.tolist(), gaps.ready.tolist(), gaps.reload.tolist(), gaps.use.tolist(), strict=True
    ):
        if flow.held[s]:
            spans[s] = (-1, n)
        else:
            start, stop = spans.get(s, (ready, ready))
            spans[s] = (start, max(stop, n if reload == NEVER else use))
    untouched = (np.diff(draft.uses.start) == 0) & ~draft.resident
    for s in np.flatnonzero(flow.held & flow.kept & untouched & (flow.bytes > 0)).tolist():
        spans[s] = (-1, n)  # returned as it was, and never on the device
    who = sorted(spans)
    lower = np.array([spans[s][0] for s in who], np.int32)
    upper = np.array([spans[s][1] for s in who], np.int32)
    sizes = flow.bytes[np.array(who, np.int64)]
    offsets = pack(lower, upper, sizes, rounds=0, between=problem.stop.check).offsets.tolist()
    return [HostResidency(s, *spans[s], offset) for s, offset in zip(who, offsets, strict=True)]
