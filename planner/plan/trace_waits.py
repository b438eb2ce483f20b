"""Where compute waits for a copy, and for which."""

from __future__ import annotations

from planner.graph import Graph
from planner.plan.swap_plan import SwapPlan
from planner.plan.timeline import Timeline

#: From and until when, in seconds, and what for.
Wait = tuple[float, float, str]


def waits(graph: Graph, plan: SwapPlan, timeline: Timeline) -> dict[int, Wait]:
    """By slot, when and for what the op in it waits; slot `n` is the end of the step, which waits for all copies.

    The time between two ops is a wait only if a copy that the later one is due to ends within it.

    Args:
        graph, plan: the step and its plan.
        timeline: of a step by that plan.
    """
    n = len(plan.order)
    copies = [
        (copy.release, stop, f"{graph.storages[copy.storage].name} to leave")
        for copy, (_, stop) in zip(plan.swap_outs, timeline.swap_out.tolist(), strict=True)
    ]
    copies += [
        (copy.use, stop, f"{graph.storages[copy.storage].name} to arrive")
        for copy, (_, stop) in zip(plan.swap_ins, timeline.swap_in.tolist(), strict=True)
    ]
    due: dict[int, tuple[float, str]] = {}
    for slot, stop, cause in [*copies, *((n, stop, "the last copies to end") for _, stop, _ in copies)]:
        due[slot] = max(due.get(slot, (stop, cause)), (stop, cause))
    starts = [*timeline.compute[:, 0].tolist(), timeline.seconds]
    stops = [0.0, *timeline.compute[:, 1].tolist()]
    return {
        slot: (stops[slot], starts[slot], cause)
        for slot, (end, cause) in sorted(due.items())
        if starts[slot] > stops[slot] and end > stops[slot]
    }
