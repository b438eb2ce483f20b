"""When each storage is alive if nothing is swapped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.errors import StowageError
from planner.graph import Graph, GraphArrays, arrays

Slots = NDArray[np.int32]


class Lifetimes(NamedTuple):
    """Half-open spans of slots in which storages must be in memory.

    Args:
        birth, end: `[storages]`, storage `s` is alive in slots `birth[s] <= i < end[s]`; equal if it never is.
        reused_buffer: `[storages]`, the storage whose buffer this one reuses from slot `birth` on, or -1.
        live_bytes: `[ops]`, bytes alive in each slot.
    """

    birth: Slots
    end: Slots
    reused_buffer: Slots
    live_bytes: NDArray[np.int64]

    @property
    def peak_bytes(self) -> int:
        """The most bytes alive in any slot."""
        return int(self.live_bytes.max(initial=0))


def lifetimes(graph: Graph | GraphArrays, order: Sequence[int] | NDArray[np.integer] | None = None) -> Lifetimes:
    """Find when each storage is alive in an order of the ops.

    Persistent storages live through the whole step, inputs until their last use, outputs of the step to its end.
    Where an op may overwrite an input that has no later use, its output reuses the input's buffer.

    Args:
        graph: the graph, or its arrays when many orders are tried.
        order: the op in each slot; without it, the captured order.

    Raises:
        StowageError: an op stands in the order twice.
    """
    from planner.memory.liveness_kernel import find_lifetimes

    flat = graph if isinstance(graph, GraphArrays) else arrays(graph)
    slots = np.arange(flat.op_count, dtype=np.int32) if order is None else np.asarray(order, np.int32)
    if len(slots) > flat.op_count:
        raise StowageError(
            f"lifetimes are those of an order in which each op runs once; this one has {len(slots):,} entries for "
            f"{flat.op_count:,} ops"
        )
    spans = find_lifetimes(
        slots, flat.reads.start, flat.reads.items, flat.writes.start, flat.writes.items,
        flat.overwrites.start, flat.overwrites.items, flat.creates,
        flat.bytes, flat.live_in, flat.persistent, flat.live_out,
    )  # fmt: skip
    return Lifetimes(*spans)


class Chains(NamedTuple):
    """Storages that share one address because each reuses the buffer of the one before.

    Args:
        head: `[storages]`, the first storage of the chain that each storage belongs to.
        lower, upper: `[storages]`, slots in which the chain of a head is alive; equal for all other storages.
    """

    head: Slots
    lower: Slots
    upper: Slots


def reuse_chains(life: Lifetimes) -> Chains:
    """Join storages that reuse each other's buffers, so that each chain is packed as one box."""
    head = np.arange(len(life.birth), dtype=np.int32)
    lower, upper = life.birth.copy(), life.end.copy()
    # A reused buffer is born before the storage that reuses it, so in order of birth its head is already known.
    reusing = np.flatnonzero(life.reused_buffer >= 0)
    for storage in reusing[np.argsort(life.birth[reusing], kind="stable")]:
        first = head[life.reused_buffer[storage]]
        head[storage] = first
        upper[first] = life.end[storage]
        upper[storage] = lower[storage]
    return Chains(head, lower, upper)
