"""The collectives of a worker's step, and when each of them runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.graph import Graph
from planner.plan import SwapPlan, Timeline, own_graph, require_own_timeline
from planner.units import format_percent, format_seconds, several
from widgets.info.argument_types import require_graph
from widgets.info.residency_spans import Floats, Ints

#: What the targets of collectives begin with.
_PREFIX = "stowage."
#: The lane in which a plan may have them run beside other ops.
_LANE = "communication"


@dataclass(frozen=True, eq=False)
class Collectives:
    """When a worker communicates with others.

    Args:
        op: `[collectives]`, the op of each, in the order in which they run.
        spans: `[collectives, 2]`, start and stop of each in seconds.
        step_seconds: length of the step.
    """

    op: Ints
    spans: Floats
    step_seconds: float

    @property
    def seconds(self) -> float:
        """How long they take together."""
        return float((self.spans[:, 1] - self.spans[:, 0]).sum())

    @property
    def summary(self) -> str:
        """The picture in one sentence; nothing where there are none."""
        if not len(self.op):
            return ""
        share = f", {format_percent(self.seconds / self.step_seconds)} of the step" if self.step_seconds else ""
        return f"{several(len(self.op), 'collective')} take {format_seconds(self.seconds)}{share}."


def get_collectives(graph: Graph, plan: SwapPlan, timeline: Timeline | None = None) -> Collectives:
    """Find the collectives of a step.

    Args:
        graph: the graph of a worker; a graph of a whole step has none.
        plan: its plan.
        timeline: a measured timeline; by default the plan's prediction.

    Raises:
        StowageError: `graph` is no graph, or the plan or timeline is for another one.
    """
    require_graph(graph)
    shown = plan.predicted if timeline is None else timeline
    graph = own_graph(graph, plan)
    require_own_timeline(plan, shown)
    slots = [slot for slot, op in enumerate(plan.order) if graph.ops[op].target.startswith(_PREFIX)]
    spans = {slot: tuple(shown.compute[slot]) for slot in slots}
    for lane, entries in plan.queues.items():
        if lane.kind == _LANE:  # beside the ops, in place of in the order
            spans |= {entry.start: tuple(span) for entry, span in zip(entries, shown.spans[lane], strict=True)}
    slots.sort(key=lambda slot: spans[slot][0])
    ops = np.array([plan.order[slot] for slot in slots], np.int64)
    return Collectives(ops, np.array([spans[slot] for slot in slots], np.float64).reshape(-1, 2), shown.seconds)
