"""The holders of the peak of a step or a plan, by module, by line of code or by kind."""

from __future__ import annotations

from dataclasses import dataclass

from planner.graph import Graph
from planner.plan import SwapPlan, Timeline
from planner.units import bytes_label, format_percent, several
from widgets.info.argument_types import require_graph
from widgets.info.holder_parts import NO_LINE, GroupBy
from widgets.info.holders import Holder, get_holders
from widgets.info.residency_spans import Axis, stays


@dataclass(frozen=True, slots=True)
class PeakHolders:
    """What holds the peak.

    Args:
        name: what was captured.
        by: what its tensors are grouped by.
        axis: whether `peak_at` is in seconds or in slots.
        peak_bytes, peak_at: the most bytes in use, and when they first are.
        holders: the largest first; together exactly `peak_bytes`.
    """

    name: str
    by: GroupBy
    axis: Axis
    peak_bytes: int
    peak_at: float
    holders: tuple[Holder, ...]

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        if not self.holders:
            return f"{self.name} holds no memory at any time."
        first, count = self.holders[0], len(self.holders)
        groups = several(count, "line") if self.by == "line" else f"{several(count, 'group')} by {self.by}"
        hold = "holds" if count == 1 else "hold"
        name = f"what has {NO_LINE}" if first.name == NO_LINE else first.name
        where = f"{'mostly ' if first.more_groups else ''}in {first.group.value}"
        share = format_percent(first.bytes / self.peak_bytes)
        return (
            f"{groups} {hold} the peak of {bytes_label(self.peak_bytes)}; {name} holds most, "
            f"{bytes_label(first.bytes)} or {share}, {where}."
        )


def get_peak_holders(
    graph: Graph, plan: SwapPlan | None = None, timeline: Timeline | None = None, by: GroupBy = "module"
) -> PeakHolders:
    """Find what holds the peak.

    Args:
        graph: the step.
        plan: its plan; by default the captured order with nothing swapped.
        timeline: seconds for the plan's slots; by default its predicted timeline.
        by: `"module"`, `"line"` for the line of code, or `"kind"`.

    Raises:
        StowageError: `graph` is no graph, `by` is another word, or the plan or timeline is for another graph.
    """
    require_graph(graph)
    graph, spans = stays(graph, plan, timeline)
    holders = get_holders(graph, spans, spans.fullest, by)
    return PeakHolders(graph.name, by, spans.axis, sum(holder.bytes for holder in holders), spans.fullest, holders)
