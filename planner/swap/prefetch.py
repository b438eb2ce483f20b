"""Bringing storages back as early as memory allows, once it is known who is away when."""

from __future__ import annotations

import numpy as np
from numba import njit

from planner.swap.gaps import NEVER, Gaps
from planner.swap.problem import Bytes, Flow


@njit(cache=True, nogil=True)
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
