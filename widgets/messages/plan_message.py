"""A plan for the page: residencies, copies and stalls as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from planner.graph import Graph
from planner.memory import unswapped_bytes
from planner.plan import PlanIndex, PlanSummary, SwapPlan, own_graph, require_own_timeline
from planner.units import bytes_label, format_percent, format_seconds
from widgets.info import (
    GroupBy,
    HolderPart,
    address_map_of,
    get_collectives,
    get_holder_parts,
    spans_of,
    streams_of,
)
from widgets.messages.message import Message, message


@dataclass(frozen=True, slots=True)
class PlanStatus:
    """Facts about a plan that the plan does not contain.

    Args:
        number: number of the plan; a later plan has a higher number.
        summary: its key figures.
        placeholder: whether it is the captured step with nothing swapped instead of a plan for the budget.
    """

    number: int
    summary: PlanSummary
    placeholder: bool = False


def plan_message(graph: Graph, plan: SwapPlan, status: PlanStatus) -> Message:
    """Pack a plan.

    Args:
        graph: the step.
        plan: its plan.
        status: further facts about the plan.

    Raises:
        StowageError: the plan is for another graph.
    """
    timeline, figures = plan.predicted, status.summary
    graph = own_graph(graph, plan)
    require_own_timeline(plan, timeline)
    index = PlanIndex(graph, plan)
    unused = _unused_by_repeats(index)
    spans, streams = spans_of(index, timeline), streams_of(index, timeline)
    collectives = get_collectives(graph, plan)
    outs, ins = [copy.storage for copy in plan.swap_outs], [copy.storage for copy in plan.swap_ins]
    held = spans.storage[spans.present(spans.fullest)].tolist()
    parts = {by: get_holder_parts(graph, held, by) for by in get_args(GroupBy)}
    content = {
        "plan": status.number,
        "method": plan.method,
        "budget_bytes": plan.budget_bytes,
        "peak_bytes": plan.peak_bytes,
        "step_seconds": timeline.seconds,
        "ideal_seconds": figures.ideal_seconds,
        "bound_seconds": figures.bound_seconds,
        "stall_seconds": streams.stall_seconds,
        "again": streams.repeats,
        "recompute_seconds": figures.recompute_seconds,
        "bytes_in": figures.bytes_in,
        "bytes_out": figures.bytes_out,
        "moved": figures.moved,
        "host_bytes": plan.host_bytes,
        "valid": figures.valid,
        "placeholder": status.placeholder,
        "summary": _summary(plan, status),
        "memory_summary": address_map_of(index, spans).summary,
        "streams_summary": f"{streams.summary} {collectives.summary}".rstrip(),
        "part_names": {by: [part.name for part in each] for by, each in parts.items()},
    }
    return message("plan", content, {
        "order": ("i4", plan.order),
        "op_start": ("f4", timeline.compute[:, 0]),
        "op_stop": ("f4", timeline.compute[:, 1]),
        "repeat_slot": ("i4", index.repeats),
        "unused_slot": ("i4", [slot for slot, _ in unused]),
        "unused_storage": ("i4", [storage for _, storage in unused]),
        "residency_storage": ("i4", spans.storage),
        "residency_start": ("f4", spans.start),
        "residency_stop": ("f4", spans.stop),
        "residency_slot": ("i4", spans.slots[:, 0]),
        "residency_slot_stop": ("i4", spans.slots[:, 1]),
        "residency_offset": ("f8", spans.offset),
        "residency_arrive": ("f4", spans.copy_in[:, 1]),
        "residency_leave": ("f4", spans.copy_out[:, 0]),
        "residency_recomputed": ("i4", spans.recomputed),
        "collective_op": ("i4", collectives.op),
        "collective_start": ("f4", collectives.spans[:, 0]),
        "collective_stop": ("f4", collectives.spans[:, 1]),
        "out_storage": ("i4", outs),
        "out_start": ("f4", timeline.swap_out[:, 0]),
        "out_stop": ("f4", timeline.swap_out[:, 1]),
        "in_storage": ("i4", ins),
        "in_start": ("f4", timeline.swap_in[:, 0]),
        "in_stop": ("f4", timeline.swap_in[:, 1]),
        "stall_start": ("f4", [stall.start for stall in streams.stalls]),
        "stall_stop": ("f4", [stall.stop for stall in streams.stalls]),
        "stall_op": ("i4", [stall.op for stall in streams.stalls]),
        "stall_storage": ("i4", [stall.storage for stall in streams.stalls]),
        **{f"{by}_part": ("i4", _part_of(graph, each)) for by, each in parts.items()},
        "unswapped": ("f8", unswapped_bytes(index)),
    })  # fmt: skip


def _part_of(graph: Graph, parts: Sequence[HolderPart]) -> NDArray[np.int32]:
    """Per storage, the number of its part."""
    numbers = np.zeros(len(graph.storages), np.int32)
    for number, part in enumerate(parts):
        numbers[list(part.storages)] = number
    return numbers


def _unused_by_repeats(index: PlanIndex) -> list[tuple[int, int]]:
    """Slots of ops that run again, each with a storage that the op uses only when it runs first."""
    graph, order = index.graph, index.plan.order
    return [
        (slot, storage)
        for slot in index.repeats
        for storage in sorted({*graph.reads[order[slot]], *graph.writes[order[slot]]})
        if storage not in index.reads[slot] and storage not in index.writes[slot]
    ]


def _summary(plan: SwapPlan, status: PlanStatus) -> str:
    if status.placeholder:
        return f"No plan: the step as captured, nothing swapped, which takes {bytes_label(plan.peak_bytes)}."
    seconds, figures = plan.predicted.seconds, status.summary
    speed = f", {format_percent(figures.ideal_seconds / seconds)} of ideal speed" if seconds > 0 else ""
    return (
        f"Within {bytes_label(plan.budget_bytes)} a step takes {format_seconds(seconds)}{speed}, "
        f"found by {plan.method}{'' if figures.valid else '; the validator refuses it'}."
    )
