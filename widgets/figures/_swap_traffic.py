"""Bytes that a plan copies to the host and back, by box of a module graph."""

from __future__ import annotations

from collections import defaultdict

from planner.units import bytes_label
from widgets.info import ModuleGraph

UP, DOWN = "\N{UPWARDS ARROW}", "\N{DOWNWARDS ARROW}"


def moved(info: ModuleGraph) -> dict[int, tuple[int, int]]:
    """By box, bytes of its own storages copied out, and bytes copied in because the box needs them.

    Box -1 collects storages that no box owns or needs.
    """
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for swap in info.swaps:
        sums[swap.source][0] += swap.out_bytes
        sums[swap.target][1] += swap.in_bytes
    return {box: (out, into) for box, (out, into) in sorted(sums.items())}


def move_text(out: int, into: int) -> str:
    """`↑ 1.20 GiB  ↓ 0.40 GiB`, without amounts of zero."""
    parts = [f"{sign}\N{NO-BREAK SPACE}{bytes_label(size)}" for sign, size in ((UP, out), (DOWN, into)) if size]
    return "\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}".join(parts)
