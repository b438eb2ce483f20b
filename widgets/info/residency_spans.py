"""Residencies as spans on the time axis of a picture, in slots or in seconds.

A plan counts in slots. On an axis in seconds a residency begins when its op or its copy in begins, and ends when its
last op and its copy out have ended, so that residencies at one address never overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from planner.graph import Graph
from planner.memory import lifetimes
from planner.plan import PlanIndex, SwapPlan, Timeline, own_graph, require_own_timeline
from widgets.info.argument_types import require_plan

Axis = Literal["seconds", "slots"]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_NO_COPY = (np.nan, np.nan)


@dataclass(frozen=True, eq=False)
class ResidencySpans:
    """Residencies on the device, as parallel arrays.

    Args:
        axis: whether `start`, `stop`, `end` and `op_start` are seconds or slots.
        end: end of the step, on that axis.
        order: the op in each slot.
        op_start: `[ops]`, start of the op in each slot, on that axis.
        storage: `[residencies]`.
        start, stop: `[residencies]`, span on that axis.
        slots: `[residencies, 2]`, the same in slots.
        offset: `[residencies]`, address in bytes; -1 without a plan.
        bytes: `[residencies]`.
        copy_in, copy_out: `[residencies, 2]`, seconds of its copy on the link; NaN where there is none, and in slots.
        recomputed: `[residencies]`, whether an op that ran before makes what is in it.
        repeats: the slots whose op ran before, ascending.
    """

    axis: Axis
    end: float
    order: tuple[int, ...]
    op_start: Floats
    storage: Ints
    start: Floats
    stop: Floats
    slots: Ints
    offset: Ints
    bytes: Ints
    copy_in: Floats
    copy_out: Floats
    recomputed: Flags
    repeats: tuple[int, ...]

    def op_at(self, moment: float) -> int:
        """The op that runs at a moment, or ran last before it; -1 in a step without ops."""
        slot = int(np.searchsorted(self.op_start, moment, side="right")) - 1
        return self.order[max(slot, 0)] if self.order else -1

    def present(self, moment: float) -> Ints:
        """The residencies that include a moment."""
        return np.flatnonzero((self.start <= moment) & (moment < self.stop))

    @property
    def fullest(self) -> float:
        """The first moment with the most bytes; 0 in a step without residencies."""
        moments, at = np.unique(np.concatenate([self.start, self.stop]), return_inverse=True)
        change = np.zeros(len(moments), np.int64)
        np.add.at(change, at, np.concatenate([self.bytes, -self.bytes]))
        return float(moments[change.cumsum().argmax()]) if len(moments) else 0.0


def captured_stays(graph: Graph) -> ResidencySpans:
    """The step in captured order with nothing swapped, in slots."""
    life = lifetimes(graph)
    alive = np.flatnonzero(life.end > life.birth)
    slots = np.stack([life.birth[alive], life.end[alive]], axis=1).astype(np.int64)
    order = tuple(range(len(graph.ops)))
    return _spans_of(
        graph, "slots", len(order), order, np.arange(len(order), dtype=np.float64), alive, slots,
        slots.astype(np.float64), np.full(len(alive), -1), np.zeros(len(alive), np.bool_), (),
    )  # fmt: skip


def stays(
    graph: Graph, plan: SwapPlan | None, timeline: Timeline | None = None, axis: Axis = "seconds"
) -> tuple[Graph, ResidencySpans]:
    """A plan's residencies, in slots or in the seconds of a timeline, and the graph with the workspaces of the plan.

    Args:
        graph: the step.
        plan: its plan; None for the captured order with nothing swapped, in slots.
        timeline: seconds for the plan's slots; by default its predicted timeline.
        axis: seconds, or slots.

    Raises:
        StowageError: the plan or the timeline belongs to another graph.
    """
    if plan is None:
        return graph, captured_stays(graph)
    require_plan(plan)
    timeline = plan.predicted if timeline is None else timeline
    require_own_timeline(plan, timeline)
    index = PlanIndex(own_graph(graph, plan), plan)
    return index.graph, spans_of(index, timeline, axis)


def spans_of(index: PlanIndex, timeline: Timeline, axis: Axis = "seconds") -> ResidencySpans:
    """The residencies of an indexed plan, in slots or in the seconds of a timeline, which are known to be of one step.

    Args:
        index: of the plan.
        timeline: measured or predicted times of its step.
        axis: seconds, or slots.
    """
    graph, plan = index.graph, index.plan
    storage, slots, offset, n = index.storage, np.stack([index.start, index.stop], axis=1), index.offset, index.slots
    if axis == "slots":
        spans, op_start = slots.astype(np.float64), np.arange(n, dtype=np.float64)
        return _spans_of(
            graph, axis, n, plan.order, op_start, storage, slots, spans, offset, index.recomputed, index.repeats
        )
    # the last row is that of residencies without a copy
    came, went = (
        np.vstack([timeline.swap_in, _NO_COPY])[index.copy_in],
        np.vstack([timeline.swap_out, _NO_COPY])[index.copy_out],
    )
    op_start, op_stop = timeline.compute[:, 0], timeline.compute[:, 1]
    writes = [(*index.writes[slot], graph.ops[op].workspace) for slot, op in enumerate(plan.order)]
    made = _among(storage, slots[:, 0], writes)
    start = np.where(made, np.append(op_start, 0.0)[slots[:, 0]], 0.0)
    # an op's output reuses the buffer of its input, unless the input is swapped out and back for that op elsewhere
    taken = _among(storage, slots[:, 1], index.reads) & ~_begins(storage, slots)
    stop = np.where(taken, np.append(op_start, 0.0)[slots[:, 1]], np.append(op_stop, 0.0)[slots[:, 1] - 1])
    stop = np.where(slots[:, 1] >= n, timeline.seconds, stop)
    # what an op updates in place begins with its copy, too, which ends before the op begins
    start = np.where(np.isnan(came[:, 0]), start, came[:, 0])
    spans = np.stack([start, np.fmax(stop, went[:, 1])], axis=1)
    return _spans_of(
        graph, axis, timeline.seconds, plan.order, op_start.copy(), storage, slots, spans, offset, index.recomputed,
        index.repeats, (came, went),
    )  # fmt: skip


def _among(storage: Ints, slot: Ints, touched: Sequence[tuple[int, ...]]) -> Flags:
    """`[residencies]`, whether the op in the given slot touches the storage, for `touched` storages per slot."""
    pairs = zip(storage.tolist(), slot.tolist(), strict=True)
    return np.array([at < len(touched) and which in touched[at] for which, at in pairs], np.bool_)


def _begins(storage: Ints, slots: Ints) -> Flags:
    """`[residencies]`, whether another residency of the storage begins in the slot in which this one stops."""
    begun = set(zip(storage.tolist(), slots[:, 0].tolist(), strict=True))
    return np.array([stop in begun for stop in zip(storage.tolist(), slots[:, 1].tolist(), strict=True)], np.bool_)


def _spans_of(
    graph: Graph, axis: Axis, end: float, order: tuple[int, ...], op_start: Floats, storage: Ints, slots: Ints,
    spans: Floats, offset: Ints, recomputed: Flags, repeats: tuple[int, ...],
    copies: tuple[Floats, Floats] | None = None,
) -> ResidencySpans:  # fmt: skip
    size = np.array([storage.bytes for storage in graph.storages], np.int64)[storage]
    shown = size > 0
    came, went = (np.full((len(storage), 2), np.nan),) * 2 if copies is None else copies
    return ResidencySpans(
        axis, float(end), order, op_start, storage[shown].astype(np.int64), spans[shown, 0], spans[shown, 1],
        slots[shown], offset[shown], size[shown], came[shown], went[shown], recomputed[shown], repeats,
    )  # fmt: skip
