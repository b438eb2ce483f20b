"""Stays: who is on the device from when to when, on the axis that a picture has.

A plan counts in slots. On an axis in seconds a stay begins when its op or its copy in begins, and ends when its last
op and its copy out have ended, so that stays at one address never overlap and what is drawn is what happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from planner.errors import StowageError
from planner.graph import Graph
from planner.memory import SwapPlan, Timeline, lifetimes

Axis = Literal["seconds", "slots"]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Storage, start, stop, offset.
_Row = tuple[int, float, float, int]
_NO_COPY = np.full(2, np.nan)


@dataclass(frozen=True, eq=False)
class Stays:
    """Stays on the device, as parallel arrays.

    Args:
        axis: whether `start`, `stop`, `end` and `op_start` are seconds or slots.
        end: where the step ends.
        order: the op in each slot.
        op_start: `[ops]`, where the op in each slot starts.
        storage: `[stays]`.
        start, stop: `[stays]`, from when until when.
        offset: `[stays]`, address in bytes; -1 where no plan gave one.
        bytes: `[stays]`.
        copy_in, copy_out: `[stays, 2]`, seconds in which it is on the link; NaN where it is not, and in slots.
    """

    axis: Axis
    end: float
    order: tuple[int, ...]
    op_start: Floats
    storage: Ints
    start: Floats
    stop: Floats
    offset: Ints
    bytes: Ints
    copy_in: Floats
    copy_out: Floats

    def op_at(self, moment: float) -> int:
        """The op that runs then, or was the last to run; -1 in a step without ops."""
        slot = int(np.searchsorted(self.op_start, moment, side="right")) - 1
        return self.order[max(slot, 0)] if self.order else -1

    def present(self, moment: float) -> Ints:
        """The stays that include a moment."""
        return np.flatnonzero((self.start <= moment) & (moment < self.stop))


def captured_stays(graph: Graph) -> Stays:
    """The step in captured order with nothing swapped, in slots."""
    life = lifetimes(graph)
    alive = np.flatnonzero(life.end > life.birth)
    rows = [(int(storage), float(life.birth[storage]), float(life.end[storage]), -1) for storage in alive]
    order = tuple(range(len(graph.ops)))
    return _stays(graph, "slots", len(order), order, np.arange(len(order), dtype=np.float64), rows)


def plan_stays(graph: Graph, plan: SwapPlan, timeline: Timeline | None = None, axis: Axis = "seconds") -> Stays:
    """A plan's residencies, in slots or in the seconds of a timeline (the predicted one if none is given).

    Raises:
        StowageError: the plan or the timeline belongs to another graph.
    """
    timeline = plan.predicted if timeline is None else timeline
    require_same_step(graph, plan, timeline)
    slots = len(plan.order)
    if axis == "slots":
        spans = [(stay.storage, stay.start, stay.stop, stay.offset) for stay in plan.residencies]
        return _stays(graph, axis, slots, plan.order, np.arange(slots, dtype=np.float64), spans)
    copied_in = {(swap.storage, swap.start): timeline.swap_in[k] for k, swap in enumerate(plan.swap_ins)}
    copied_out = {(swap.storage, swap.release): timeline.swap_out[k] for k, swap in enumerate(plan.swap_outs)}
    op_start, op_stop = timeline.compute[:, 0], timeline.compute[:, 1]
    reads = [frozenset(graph.reads[op]) for op in plan.order]
    writes = [frozenset((*graph.writes[op], graph.ops[op].workspace)) for op in plan.order]
    rows: list[_Row] = []
    came, went = [], []
    for stay in plan.residencies:
        arrival = copied_in.get((stay.storage, stay.start), _NO_COPY)
        departure = copied_out.get((stay.storage, stay.stop), _NO_COPY)
        made = stay.start < slots and stay.storage in writes[stay.start]
        start = op_start[stay.start] if made else 0.0
        if stay.stop >= slots:
            stop = timeline.seconds
        elif stay.storage in reads[stay.stop]:  # its memory is taken over by what the op in that slot makes
            stop = op_start[stay.stop]
        else:
            stop = op_stop[stay.stop - 1]
        rows.append((stay.storage, float(np.fmax(start, arrival[0])), float(np.fmax(stop, departure[1])), stay.offset))
        came.append(arrival)
        went.append(departure)
    copies = np.array(came, np.float64).reshape(-1, 2), np.array(went, np.float64).reshape(-1, 2)
    return _stays(graph, axis, timeline.seconds, plan.order, op_start.copy(), rows, copies)


def require_same_step(graph: Graph, plan: SwapPlan, timeline: Timeline) -> None:
    """Refuse to draw a plan or a timeline over another graph.

    Raises:
        StowageError: the plan's order or storages are not the graph's, or the timeline has other spans than the plan.
    """
    ours = range(len(graph.storages))
    if sorted(plan.order) != list(range(len(graph.ops))) or any(stay.storage not in ours for stay in plan.residencies):
        raise StowageError(f"this plan is not for {graph.name}; plan that graph again or draw the plan's own graph")
    spans = (len(timeline.compute), len(timeline.swap_out), len(timeline.swap_in))
    if spans != (len(plan.order), len(plan.swap_outs), len(plan.swap_ins)):
        raise StowageError("this timeline is not one of this plan; pass the timeline of a run of the same plan")


def _stays(
    graph: Graph, axis: Axis, end: float, order: tuple[int, ...], op_start: Floats,
    rows: Sequence[_Row], copies: tuple[Floats, Floats] | None = None,
) -> Stays:  # fmt: skip
    size = np.array([graph.storages[row[0]].bytes for row in rows], np.int64)
    shown = size > 0
    storage, start, stop, offset = (np.array([row[column] for row in rows], np.float64)[shown] for column in range(4))
    came, went = (np.full((len(rows), 2), np.nan),) * 2 if copies is None else copies
    return Stays(
        axis, float(end), order, op_start, storage.astype(np.int64), start, stop, offset.astype(np.int64),
        size[shown], came[shown], went[shown],
    )  # fmt: skip
