"""The decisions that annealing changes: order, storages resident at the start, absences, and reused buffers."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.plan import Residency, SwapPlan
from planner.swap.draft.absences import NEVER
from planner.swap.draft.draft import UnplacedPlan
from planner.swap.methods import checkpoint_validation as valid
from planner.swap.problem.problem import Bytes, Flags, Ints, Problem, Seconds
from planner.swap.problem.uses import uses_of
from planner.swap.simulate.draft_timing import copy_seconds

Spans = NDArray[np.int32]
#: Columns of `Decisions.spans`.
ABSENT, RELEASE, RELOAD, OUT_RANK, IN_RANK = range(5)
#: Ranks per slot, which order copies of one deadline in the queues.
RANKS_PER_SLOT = 64


class Decisions(NamedTuple):
    """A plan as its decisions; `decode` turns any of them into legal spans.

    Each storage with `u` uses has `u + 1` rows in `spans`, from row `uses_start[s] + s` on: the time before its first
    use, those between two uses, and the time after its last one. Columns: whether it is absent then, the slots of
    release and reload, and how much later its copies out and in come in the queues than by their deadlines, in slots
    over `RANKS_PER_SLOT`.

    `order` is the op in each slot; `resident[s]` is whether a storage is on the device when the step starts;
    `reused_buffer[op]` is the storage whose buffer an op reuses, or -1.
    """

    order: Ints
    resident: Flags
    reused_buffer: Ints
    spans: Spans

    def copy(self) -> Decisions:
        """A copy that may be modified."""
        return Decisions(self.order.copy(), self.resident.copy(), self.reused_buffer.copy(), self.spans.copy())

    def to_json(self) -> dict[str, list[int]]:
        """The decisions as plain data; of the spans, only rows that are not all 0."""
        rows = np.flatnonzero(self.spans.any(axis=1))
        return {
            "order": self.order.tolist(),
            "resident": np.flatnonzero(self.resident).tolist(),
            "reused_buffer": self.reused_buffer.tolist(),
            "rows": rows.tolist(),
            "spans": self.spans[rows].ravel().tolist(),
        }

    @staticmethod
    def from_json(problem: Problem, data: dict[str, list[int]]) -> Decisions:
        """The decisions that `to_json` returned, for the same problem.

        Raises:
            LookupError, TypeError, ValueError: the data are not decisions for it.
        """
        found = blank_decisions(problem, valid.order(problem, data["order"]))
        found.resident[valid.wholes(data["resident"], None, 0, problem.storages - 1)] = True
        found.reused_buffer[:] = valid.reused_buffers(problem, data["reused_buffer"])
        rows = valid.wholes(data["rows"], None, 0, len(found.spans) - 1)
        found.spans[rows] = valid.spans(data["spans"], len(rows))
        return found


class AnnealingArrays(NamedTuple):
    """A problem as arrays: per op its touches, predecessors and successors, per storage its properties."""

    touch_start: Ints
    touch_items: Ints
    touch_writes: Flags
    uses_start: Ints
    reusable_start: Ints
    reusable_items: Ints
    creates: Ints
    before_start: Ints
    before_items: Ints
    after_start: Ints
    after_items: Ints
    bytes: Bytes
    live_in: Flags
    persistent: Flags
    updated: Flags
    live_out: Flags
    seconds: Seconds
    work: Seconds
    shared: float


def annealing_arrays(problem: Problem) -> AnnealingArrays:
    """Lay out a problem for annealing."""
    arrays = problem.arrays
    uses = np.bincount(arrays.touches.items, minlength=problem.storages)
    return AnnealingArrays(
        arrays.touches.start, arrays.touches.items, arrays.writes,
        np.concatenate(([0], np.cumsum(uses))).astype(np.int32),
        arrays.overwrites.start, arrays.overwrites.items, arrays.creates,
        problem.predecessors.start, problem.predecessors.items, problem.successors.start, problem.successors.items,
        arrays.bytes, arrays.live_in, arrays.persistent, arrays.updated, arrays.live_out,
        problem.seconds, copy_seconds(problem), problem.link.shared,
    )  # fmt: skip


def blank_decisions(problem: Problem, order: Ints) -> Decisions:
    """No storage is absent unless it must be, and no buffer is reused."""
    rows = len(problem.arrays.touches.items) + problem.storages
    none_resident = np.zeros(problem.storages, np.bool_)
    return Decisions(order.copy(), none_resident, np.full(problem.ops, -1, np.int32), np.zeros((rows, 5), np.int32))


def decisions_of_unplaced(problem: Problem, draft: UnplacedPlan) -> Decisions:
    """The decisions of an unplaced plan."""
    found, uses, absences = blank_decisions(problem, draft.order), draft.uses, draft.absences
    touched = np.diff(uses.start) > 0
    found.resident[:] = draft.resident & touched
    found.reused_buffer[draft.order] = draft.reuses_buffer_of
    for s, release, reload, use in zip(
        absences.storage.tolist(),
        absences.release.tolist(),
        absences.reload.tolist(),
        absences.use.tolist(),
        strict=True,
    ):
        slots = uses.slot[uses.start[s] : uses.start[s + 1]]
        row = uses.start[s] + s + (len(slots) if use == NEVER else np.searchsorted(slots, use))
        found.spans[row, :3] = 1, max(release, 0), min(reload, problem.ops)
    return found


def decisions_of_plan(problem: Problem, plan: SwapPlan) -> Decisions:
    """The decisions of a plan."""
    found = blank_decisions(problem, np.array(plan.order, np.int32))
    arrays, uses = problem.arrays, uses_of(found.order, problem.arrays)
    arriving = {copy.storage for copy in plan.swap_ins if copy.start == 0}
    residencies_of: dict[int, list[Residency]] = {}
    for residency in sorted(plan.residencies, key=lambda residency: residency.start):
        residencies_of.setdefault(residency.storage, []).append(residency)
    for s, residencies in residencies_of.items():
        slots = uses.slot[uses.start[s] : uses.start[s + 1]]
        if not len(slots):
            continue
        row = uses.start[s] + s
        found.resident[s] = arrays.live_in[s] and residencies[0].start == 0 and s not in arriving
        if arrays.live_in[s] and not found.resident[s]:
            found.spans[row, :3] = 1, 0, residencies[0].start
        for residency, following in pairwise(residencies):
            found.spans[row + np.searchsorted(slots, residency.stop), :3] = 1, residency.stop, following.start
        if (arrays.persistent[s] and not found.resident[s]) or (
            arrays.live_out[s] and residencies[-1].stop < problem.ops
        ):
            found.spans[row + len(slots), :3] = 1, residencies[-1].stop, problem.ops
    for slot, op in enumerate(plan.order):
        created = arrays.creates[op]
        for s in arrays.overwrites.items[arrays.overwrites.start[op] : arrays.overwrites.start[op + 1]].tolist():
            if created in residencies_of and s in residencies_of:
                last, first = residencies_of[s][-1], residencies_of[created][0]
                if last.stop == slot and last.offset == first.offset:
                    found.reused_buffer[op] = s
    outs = [(copy.storage, copy.release, copy.release) for copy in plan.swap_outs]
    ins = [(copy.storage, copy.start, copy.use) for copy in plan.swap_ins]
    for column, queue in ((OUT_RANK, outs), (IN_RANK, ins)):
        key = 0
        for s, slot, deadline in queue:
            key = max(key + 1, RANKS_PER_SLOT * deadline)
            slots = uses.slot[uses.start[s] : uses.start[s + 1]]
            found.spans[uses.start[s] + s + np.searchsorted(slots, slot), column] = key - RANKS_PER_SLOT * deadline
    return found
