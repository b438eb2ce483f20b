"""Bringing storages back as early as memory allows, once it is known who is away when."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.kernels import kernel
from planner.swap.draft.absences import NEVER, Gaps, first_gaps
from planner.swap.draft.draft import Draft, bytes_by_slot, stays_of
from planner.swap.problem.problem import Bytes, Flow


def prefetched(flow: Flow, draft: Draft, memory: int) -> Draft:
    """A draft like the one given, with every reload as early as memory in bytes allows."""
    gaps = first_gaps(draft.gaps, len(draft.gaps.storage))
    stays = stays_of(flow, draft.uses, draft.resident, gaps, draft.inherits)
    prefetch(flow, gaps, bytes_by_slot(flow, stays, len(draft.order)), memory)
    return replace(draft, gaps=gaps)


@kernel
def prefetch(flow: Flow, gaps: Gaps, held: Bytes, memory: int) -> None:
    """Move reloads to earlier slots, those needed first going first.

    Args:
        flow: the graph.
        gaps: who is away when; its reloads are changed.
        held: `[slots]`, bytes on the device in each slot; kept up to date.
        memory: bytes.
    """
    earliest = 0
    for k in np.argsort(gaps.use, kind="mergesort"):
        if gaps.reload[k] == NEVER:
            break
        size = flow.bytes[gaps.storage[k]]
        low = max(gaps.release[k] + 1, earliest)
        q = gaps.reload[k]
        while q > low and held[q - 1] + size <= memory:
            q -= 1
            held[q] += size
        gaps.reload[k] = q
        earliest = max(earliest, q)
