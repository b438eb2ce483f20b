"""Device memory by kind over a step, from a plan and the times at which things happened."""

from __future__ import annotations

from collections.abc import Iterator

from planner.graph import Graph, Kind
from planner.plan.swap_plan import SwapPlan
from planner.plan.timeline import Timeline


def bytes_by_kind(graph: Graph, plan: SwapPlan, timeline: Timeline) -> Iterator[tuple[float, dict[str, int]]]:
    """When anything changes, in seconds, and the bytes on the device by kind from then on.

    Memory is in use from the start of the op that makes a storage, or of its copy in, or of the step where it is there
    before; until the last op that needs it and its copy out have ended.

    Args:
        graph: with the plan's workspaces.
        plan: its plan.
        timeline: of a step by that plan.
    """
    n = len(plan.order)
    start, stop = timeline.compute[:, 0].tolist(), [0.0, *timeline.compute[:, 1].tolist()]
    came = {
        (copy.storage, copy.start): span[0] for copy, span in zip(plan.swap_ins, timeline.swap_in.tolist(), strict=True)
    }
    went = {
        (copy.storage, copy.release): span[1]
        for copy, span in zip(plan.swap_outs, timeline.swap_out.tolist(), strict=True)
    }
    changes: dict[float, dict[Kind, int]] = {0.0: {}}

    def change(seconds: float, kind: Kind, size: int) -> None:
        there = changes.setdefault(seconds, {})
        there[kind] = there.get(kind, 0) + size

    for stay in plan.residencies:
        storage, leaves = graph.storages[stay.storage], (stay.storage, stay.stop)
        begin = came.get((stay.storage, stay.start))
        change(0.0 if begin is None and storage.held else start[stay.start] if begin is None else begin,
               storage.kind, storage.bytes)  # fmt: skip
        if stay.stop < n or leaves in went:
            change(max(stop[stay.stop], went.get(leaves, 0.0)), storage.kind, -storage.bytes)
    held = dict.fromkeys((kind for kind in Kind if any(kind in each for each in changes.values())), 0)
    for seconds in sorted(changes):
        for kind, size in changes[seconds].items():
            held[kind] += size
        yield seconds, {kind.value: size for kind, size in held.items()}
