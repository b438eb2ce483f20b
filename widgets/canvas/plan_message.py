"""A plan for the page: who is where when, what is copied when, and what compute waits for, as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.graph import Graph
from planner.memory import lifetimes
from planner.plan import SwapPlan
from widgets.canvas.columns import Message, message
from widgets.info.address_map import get_address_map
from widgets.info.groups import STACK
from widgets.info.holder_parts import get_holder_parts
from widgets.info.stays import plan_stays
from widgets.info.streams import get_streams
from widgets.info.units import bytes_text, percent_text, seconds_text


@dataclass(frozen=True, slots=True)
class Standing:
    """What is to be said of a plan besides the plan itself.

    Args:
        number: of the plan; a later one has a higher number.
        ideal_seconds: the step with infinite memory.
        bound_seconds: no plan within the budget is faster; None where that is not known.
        valid: whether the validator passed it.
        stand_in: whether it is no plan for the budget but the captured step with nothing swapped.
    """

    number: int
    ideal_seconds: float
    bound_seconds: float | None
    valid: bool
    stand_in: bool = False


def plan_message(graph: Graph, plan: SwapPlan, standing: Standing) -> Message:
    """Pack a plan.

    Args:
        graph: the step.
        plan: its plan.
        standing: what else is known of it.

    Raises:
        StowageError: the plan is for another graph.
    """
    stays, streams, timeline = plan_stays(graph, plan), get_streams(graph, plan), plan.predicted
    outs, ins = [copy.storage for copy in plan.swap_outs], [copy.storage for copy in plan.swap_ins]
    sizes = np.array([storage.bytes for storage in graph.storages], np.int64)
    parts = get_holder_parts(graph, stays.storage[stays.present(stays.fullest)].tolist())
    storage_part = np.zeros(len(graph.storages), np.int32)
    for number, part in enumerate(parts):
        storage_part[list(part.storages)] = number
    content = {
        "plan": standing.number,
        "method": plan.method,
        "budget_bytes": plan.budget_bytes,
        "peak_bytes": plan.peak_bytes,
        "step_seconds": timeline.seconds,
        "ideal_seconds": standing.ideal_seconds,
        "bound_seconds": standing.bound_seconds,
        "stall_seconds": streams.stall_seconds,
        "bytes_in": int(sizes[ins].sum()),
        "bytes_out": int(sizes[outs].sum()),
        "moved": len({*outs, *ins}),
        "host_bytes": plan.host_bytes,
        "valid": standing.valid,
        "stand_in": standing.stand_in,
        "summary": _summary(plan, standing),
        "memory_summary": get_address_map(graph, plan).summary,
        "streams_summary": streams.summary,
        "part_names": [part.name for part in parts],
    }
    return message("plan", content, {
        "order": ("i4", plan.order),
        "op_start": ("f4", timeline.compute[:, 0]),
        "op_stop": ("f4", timeline.compute[:, 1]),
        "stay_storage": ("i4", stays.storage),
        "stay_start": ("f4", stays.start),
        "stay_stop": ("f4", stays.stop),
        "stay_slot": ("i4", stays.slots[:, 0]),
        "stay_slot_stop": ("i4", stays.slots[:, 1]),
        "stay_offset": ("f8", stays.offset),
        "stay_arrive": ("f4", stays.copy_in[:, 1]),
        "stay_leave": ("f4", stays.copy_out[:, 0]),
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
        "part_kind": ("i4", [STACK.index(part.group) for part in parts]),
        "storage_part": ("i4", storage_part),
        "unswapped": ("f8", lifetimes(graph, plan.order).live_bytes),
    })  # fmt: skip


def _summary(plan: SwapPlan, standing: Standing) -> str:
    if standing.stand_in:
        return f"No plan: the step as captured, nothing swapped, which takes {bytes_text(plan.peak_bytes)}."
    seconds, ideal = plan.predicted.seconds, standing.ideal_seconds
    speed = f", {percent_text(ideal / seconds)} of ideal speed" if seconds > 0 else ""
    return (
        f"Within {bytes_text(plan.budget_bytes)} a step takes {seconds_text(seconds)}{speed}, "
        f"found by {plan.method}{'' if standing.valid else '; the validator refuses it'}."
    )
