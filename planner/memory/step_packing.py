"""The arena that a step needs in its captured order when nothing is swapped."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from planner.cancel import CancelToken
from planner.graph import Graph, GraphArrays, arrays
from planner.memory.liveness import lifetimes, reuse_chains
from planner.memory.packing.pack import Packing, pack

_peaks: WeakKeyDictionary[Graph, dict[int, int]] = WeakKeyDictionary()


def pack_step(
    graph: Graph | GraphArrays,
    order: Sequence[int] | NDArray[np.integer] | None = None,
    *,
    alignment: int = 64,
    capacity: int | None = None,
    stop: CancelToken | None = None,
) -> Packing:
    """Give every storage of a step one offset for its whole lifetime; nothing is swapped.

    Args:
        graph: the graph, or its arrays.
        order: the op in each slot; without it, the captured order.
        alignment: every offset is a multiple of this many bytes.
        capacity: stop as soon as the height is no more than this, in bytes.
        stop: as in `pack`.

    Returns:
        One offset per storage; a storage that reuses a buffer has its offset, and one that is never alive has 0.
    """
    flat = graph if isinstance(graph, GraphArrays) else arrays(graph)
    chains = reuse_chains(lifetimes(flat, order))
    packing = pack(chains.lower, chains.upper, flat.bytes, capacity=capacity, alignment=alignment, stop=stop)
    offsets = packing.offsets[chains.head]
    return Packing(offsets, packing.peak, packing.max_live, packing.optimal, packing.seconds, packing.bound)


def step_peak(graph: Graph | GraphArrays, alignment: int = 64, *, stop: CancelToken | None = None) -> int:
    """Bytes of device memory that the captured order takes when nothing is swapped: 100 % in a budget.

    Scratch memory outside of the arena is part of it. Computed once in the lifetime of a graph.

    Args:
        graph: the graph, or its arrays.
        alignment: every offset is a multiple of this many bytes.
        stop: as in `pack`.
    """
    known = _peaks.setdefault(graph, {}) if isinstance(graph, Graph) else {}
    if alignment not in known:
        outside = graph.outside_bytes if isinstance(graph, Graph) else 0
        known[alignment] = pack_step(graph, alignment=alignment, stop=stop).peak + outside
    return known[alignment]


def is_step_peak_known(graph: Graph, alignment: int) -> bool:
    """Whether `step_peak` returns in a moment, as it was called before."""
    return alignment in _peaks.get(graph, {})
