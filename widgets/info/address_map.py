"""The address and time of every storage on the device: a plan as boxes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.graph import Graph
from planner.plan import PlanIndex, SwapPlan, Timeline, own_graph, require_own_timeline
from planner.units import bytes_label, format_percent, several
from widgets.info.argument_types import require_graph, require_plan
from widgets.info.colour_groups import GROUP_OF, STACK
from widgets.info.residency_spans import Axis, Flags, Floats, Ints, ResidencySpans, spans_of


@dataclass(frozen=True, eq=False)
class AddressMap:
    """Boxes, one per residency, as parallel arrays.

    Args:
        name: what was captured.
        axis: whether `start`, `stop`, `end` are seconds or slots.
        end: end of the step, on that axis.
        storage: `[boxes]`.
        names, kinds: `[boxes]`, name and exact kind of the storage, also where kinds share a colour.
        group: `[boxes]`, position in `STACK`.
        start, stop: `[boxes]`, span on that axis.
        offset, bytes: `[boxes]`, address and size in bytes.
        copy_in, copy_out: `[boxes, 2]`, seconds of its copy on the link; NaN where there is none, and in slots.
        recomputed: `[boxes]`, whether an op that ran before makes what is in it.
        budget_bytes: the limit of the arena.
        peak_bytes: the largest address in use.
        used_share: share of the arena (`peak_bytes` times the step) that is in use; the rest is fragmentation.
        moved: number of storages that are swapped out or in during the step.
    """

    name: str
    axis: Axis
    end: float
    storage: Ints
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    group: Ints
    start: Floats
    stop: Floats
    offset: Ints
    bytes: Ints
    copy_in: Floats
    copy_out: Floats
    recomputed: Flags
    budget_bytes: int
    peak_bytes: int
    used_share: float
    moved: int

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        if not len(self.storage):
            return f"{self.name} holds no memory at any time."
        storages, again = len(np.unique(self.storage)), len(np.unique(self.storage[self.recomputed]))
        recomputed = f"{_counted(again)} recomputed; " if again else ""
        return (
            f"{several(storages, 'storage')} {'shares' if storages == 1 else 'share'} {bytes_label(self.peak_bytes)} "
            f"of addresses within a budget of {bytes_label(self.budget_bytes)}; {_counted(self.moved)} swapped; "
            f"{recomputed}{format_percent(1 - self.used_share)} of the area is fragmentation."
        )


def _counted(storages: int) -> str:
    return f"{storages:,} {'is' if storages == 1 else 'are'}" if storages else "none are"


def get_address_map(
    graph: Graph, plan: SwapPlan, timeline: Timeline | None = None, axis: Axis = "seconds"
) -> AddressMap:
    """Lay out a plan's residencies.

    Args:
        graph: the step.
        plan: its plan.
        timeline: seconds for the plan's slots; by default its predicted timeline.
        axis: seconds, or slots.

    Raises:
        StowageError: `graph` is no graph, or the plan or timeline is for another one.
    """
    require_graph(graph)
    require_plan(plan)
    timeline = plan.predicted if timeline is None else timeline
    graph = own_graph(graph, plan)
    require_own_timeline(plan, timeline)
    index = PlanIndex(graph, plan)
    return address_map_of(index, spans_of(index, timeline, axis))


def address_map_of(index: PlanIndex, spans: ResidencySpans) -> AddressMap:
    """Lay out the residencies of an indexed plan.

    Args:
        index: of the plan.
        spans: its residencies as spans.
    """
    graph, plan = index.graph, index.plan
    storages = [graph.storages[int(storage)] for storage in spans.storage]
    peak = int((spans.offset + spans.bytes).max(initial=0))
    area = float(peak) * spans.end
    used = float((spans.bytes * (spans.stop - spans.start)).sum())
    moved = len({swap.storage for swap in plan.swap_ins} | {swap.storage for swap in plan.swap_outs})
    return AddressMap(
        graph.name, spans.axis, spans.end, spans.storage, tuple(s.name for s in storages),
        tuple(s.kind.value for s in storages),
        np.array([STACK.index(GROUP_OF[s.kind]) for s in storages], np.int64), spans.start, spans.stop, spans.offset,
        spans.bytes, spans.copy_in, spans.copy_out, spans.recomputed, plan.budget_bytes, peak,
        used / area if area else 0.0, moved,
    )  # fmt: skip
