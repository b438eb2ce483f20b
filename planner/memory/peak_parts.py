"""Which tensors, and which lines of code, hold the peak of a step."""

from __future__ import annotations

from collections import Counter

from planner.graph import Graph, Storage, storage_lines
from planner.memory.liveness import lifetimes


def peak_storages(graph: Graph) -> tuple[Storage, ...]:
    """The storages on the device when most bytes are in use, the largest first; nothing is swapped."""
    lives = lifetimes(graph)
    peak = int(lives.live_bytes.argmax()) if graph.ops else 0
    there = (one for one in graph.storages if one.bytes and lives.birth[one.id] <= peak < lives.end[one.id])
    return tuple(sorted(there, key=lambda storage: (-storage.bytes, storage.id)))


def peak_lines(graph: Graph) -> dict[str, int]:
    """Bytes by line of code when most are in use, the largest first; nothing is swapped.

    A line has the storages that it makes or, if they exist before the step, first uses; those without a known line are
    under `""`. Together they are the most bytes in use, which an arena exceeds by the gaps between buffers.
    """
    lines, held = storage_lines(graph), Counter[str]()
    for storage in sorted(peak_storages(graph), key=lambda storage: storage.id):
        held[lines[storage.id]] += storage.bytes
    return dict(held.most_common())
