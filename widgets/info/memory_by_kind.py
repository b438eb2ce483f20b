"""Bytes of each kind on the device at every moment of a step, and the holders of the peak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planner.graph import Graph
from planner.memory import parse_budget, step_peak, unswapped_bytes
from planner.plan import PlanIndex, SwapPlan, Timeline
from planner.units import bytes_label, format_percent, format_seconds
from widgets.info.argument_types import require_graph
from widgets.info.colour_groups import GROUP_OF, STACK, Group
from widgets.info.holders import Holder, get_holders
from widgets.info.residency_spans import Axis, Floats, Ints, ResidencySpans, stays


@dataclass(frozen=True, eq=False)
class MemoryByKind:
    """Bytes over time by kind.

    Args:
        name: what was captured.
        axis: whether `edges` and `peak_at` are seconds or slots.
        edges: `[moments + 1]`; amounts are constant between edges, and the last edge is the end of the step.
        bytes: per group, `[moments]`; groups that are never present are omitted, the others are in stacking order.
        total: `[moments]`, their sum.
        unswapped: `[slots, 2]` for a plan that swaps or runs ops again: axis positions, and the bytes that the step
            would hold from each on, in the same order with nothing swapped or run again; empty otherwise.
        repeats: how many ops run again.
        budget_bytes: the limit, if there is one.
        peak_bytes, peak_at, peak_op: the largest total, when it is first reached, and the op that runs then.
        holders: the holders of the peak, the largest first; together exactly `peak_bytes`.
    """

    name: str
    axis: Axis
    edges: Floats
    bytes: Mapping[Group, Ints]
    total: Ints
    unswapped: Floats
    repeats: int
    budget_bytes: int | None
    peak_bytes: int
    peak_at: float
    peak_op: str
    holders: tuple[Holder, ...]

    @property
    def end(self) -> float:
        """The end of the step."""
        return float(self.edges[-1])

    @property
    def unswapped_peak_bytes(self) -> int:
        """The peak of the step with nothing swapped or run again; 0 if the plan does neither."""
        return int(self.unswapped[:, 1].max(initial=0))

    @property
    def at_peak(self) -> Mapping[Group, int]:
        """Bytes of each group at the peak."""
        moment = int(self.total.argmax()) if len(self.total) else 0
        return {group: int(amounts[moment]) for group, amounts in self.bytes.items()}

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        if not self.peak_bytes:
            return f"{self.name} holds no memory at any time."
        group, size = max(self.at_peak.items(), key=lambda item: item[1])
        when = f"at {format_seconds(self.peak_at)}" if self.axis == "seconds" else f"at op {self.peak_at:,.0f}"
        share = "all of them" if size == self.peak_bytes else format_percent(size / self.peak_bytes)
        text = (
            f"Memory peaks at {bytes_label(self.peak_bytes)} {when}, in {self.peak_op or 'no op'}; {group} hold {share}"
        )
        if self.unswapped_peak_bytes:
            kept = "with all kept" if self.repeats else "unswapped"
            text += f"; this order would take {bytes_label(self.unswapped_peak_bytes)} {kept}"
        if self.budget_bytes is not None:
            text += f"; the budget is {bytes_label(self.budget_bytes)}"
        return text + "."


def get_memory_by_kind(
    graph: Graph,
    plan: SwapPlan | None = None,
    budget: str | int | float | None = None,
    timeline: Timeline | None = None,
    axis: Axis = "seconds",
) -> MemoryByKind:
    """Sum the bytes on the device by kind, at every moment.

    Args:
        graph: the step.
        plan: its plan; by default the captured order with nothing swapped, in slots.
        budget: a limit to draw, in any form `parse_budget` accepts; by default the plan's budget if there is a plan.
        timeline: seconds for the plan's slots; by default its predicted timeline.
        axis: seconds, or slots.

    Raises:
        StowageError: `graph` is no graph, the plan or timeline is for another graph, or the budget is invalid.
    """
    require_graph(graph)
    graph, spans = stays(graph, plan, timeline, axis)
    limit = plan.budget_bytes if plan is not None else None
    if budget is not None:
        peak = step_peak(graph, *(() if plan is None else (plan.alignment,)))
        limit = parse_budget(budget, peak, outside_bytes=graph.outside_bytes)
    edges, amounts = sums_by_group(graph, spans)
    total = np.zeros(len(edges) - 1, np.int64)
    for amount in amounts.values():
        total += amount
    moment = int(total.argmax()) if len(total) else 0
    peak_at = float(edges[moment])
    op = spans.op_at(peak_at)
    return MemoryByKind(
        graph.name, spans.axis, edges, amounts, total, _unswapped(graph, plan, spans),
        len(spans.repeats), limit,
        int(total.max(initial=0)), peak_at, graph.ops[op].name if op >= 0 else "", get_holders(graph, spans, peak_at),
    )  # fmt: skip


def sums_by_group(graph: Graph, spans: ResidencySpans) -> tuple[Floats, dict[Group, Ints]]:
    """The edges between which nothing changes, and per group the bytes in each moment."""
    edges = np.unique(np.concatenate([[0.0, spans.end], spans.start, spans.stop, _slots(spans)]))
    groups = np.array([STACK.index(GROUP_OF[graph.storages[int(s)].kind]) for s in spans.storage], np.int64)
    sums = {}
    for number, group in enumerate(STACK):
        ours = groups == number
        if ours.any():
            change = np.zeros(len(edges), np.int64)
            np.add.at(change, np.searchsorted(edges, spans.start[ours]), spans.bytes[ours])
            np.add.at(change, np.searchsorted(edges, spans.stop[ours]), -spans.bytes[ours])
            sums[group] = np.cumsum(change)[:-1]
    return edges, sums


def _slots(spans: ResidencySpans) -> Floats:
    return spans.op_start if spans.axis == "slots" else np.zeros(0)


def _unswapped(graph: Graph, plan: SwapPlan | None, spans: ResidencySpans) -> Floats:
    if plan is None or not (plan.swap_ins or plan.swap_outs or spans.repeats):
        return np.zeros((0, 2))
    return np.column_stack([spans.op_start, unswapped_bytes(PlanIndex(graph, plan))])
