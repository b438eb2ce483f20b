"""Which lines of code hold the peak of a step."""

from __future__ import annotations

from collections import Counter

from planner.graph import Graph, storage_lines
from planner.memory.liveness import lifetimes


def peak_lines(graph: Graph) -> dict[str, int]:
    """Bytes by line of code when most are in use, the largest first; nothing is swapped.

    A line has the storages that it makes or, if they exist before the step, first uses; those without a known line are
    under `""`. Together they are the most bytes in use, which an arena exceeds by the gaps between buffers.
    """
    lives, held = lifetimes(graph), Counter[str]()
    peak = int(lives.live_bytes.argmax()) if graph.ops else 0
    for storage, line in zip(graph.storages, storage_lines(graph), strict=True):
        if storage.bytes and lives.birth[storage.id] <= peak < lives.end[storage.id]:
            held[line] += storage.bytes
    return dict(held.most_common())
