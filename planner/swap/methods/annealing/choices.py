"""What polishing chooses: the order, who starts where, who is away when, and who takes over whose memory."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.plan import Residency, SwapPlan
from planner.swap.draft.absences import NEVER
from planner.swap.draft.draft import Draft
from planner.swap.methods import recalled
from planner.swap.problem.problem import Bytes, Flags, Ints, Problem, Seconds
from planner.swap.problem.uses import uses_of
from planner.swap.simulate.draft_timing import copy_seconds

Spans = NDArray[np.int32]
#: Columns of `Choices.spans`.
AWAY, RELEASE, RELOAD, OUT_RANK, IN_RANK = range(5)
#: How finely ranks in the queues tell copies of one deadline apart.
FINE = 64


class Choices(NamedTuple):
    """A plan as what is decided in it; whatever it says, `lay_out` makes legal spans of it.

    Each storage with `u` uses has `u + 1` rows in `spans`, from row `uses_start[s] + s` on: the time before its first
    use, those between two uses, and the time after its last one. Columns: whether it is away then, the slots of
    release and reload, and how much later its copies out and in come in the queues than by their deadlines, in slots
    over `FINE`.

    `order` is the op in each slot; `resident[s]` says who is on the device when the step starts; `donor[op]` is the
    storage whose memory an op takes over, or -1.
    """

    order: Ints
    resident: Flags
    donor: Ints
    spans: Spans

    def copy(self) -> Choices:
        """The same, for changing."""
        return Choices(self.order.copy(), self.resident.copy(), self.donor.copy(), self.spans.copy())

    def to_json(self) -> dict[str, list[int]]:
        """The choices as plain data; of the spans only the rows that say anything."""
        rows = np.flatnonzero(self.spans.any(axis=1))
        return {
            "order": self.order.tolist(),
            "resident": np.flatnonzero(self.resident).tolist(),
            "donor": self.donor.tolist(),
            "rows": rows.tolist(),
            "spans": self.spans[rows].ravel().tolist(),
        }

    @staticmethod
    def from_json(problem: Problem, data: dict[str, list[int]]) -> Choices:
        """The choices that `to_json` wrote down, for the same problem.

        Raises:
            LookupError, TypeError, ValueError: they hold what are no choices for it.
        """
        found = blank_choices(problem, recalled.order(problem, data["order"]))
        found.resident[recalled.wholes(data["resident"], None, 0, problem.storages - 1)] = True
        found.donor[:] = recalled.donors(problem, data["donor"])
        rows = recalled.wholes(data["rows"], None, 0, len(found.spans) - 1)
        found.spans[rows] = recalled.spans(data["spans"], len(rows))
        return found


class Facts(NamedTuple):
    """A problem as arrays: per op what it touches and who comes before and after it, per storage what it is."""

    touch_start: Ints
    touch_items: Ints
    touch_writes: Flags
    uses_start: Ints
    giver_start: Ints
    giver_items: Ints
    creates: Ints
    before_start: Ints
    before_items: Ints
    after_start: Ints
    after_items: Ints
    bytes: Bytes
    held: Flags
    stateful: Flags
    updated: Flags
    kept: Flags
    seconds: Seconds
    work: Seconds
    shared: float


def facts_of(problem: Problem) -> Facts:
    """Lay out a problem for polishing."""
    flow = problem.flow
    uses = np.bincount(flow.touches.items, minlength=problem.storages)
    return Facts(
        flow.touches.start, flow.touches.items, flow.writes,
        np.concatenate(([0], np.cumsum(uses))).astype(np.int32),
        flow.overwrites.start, flow.overwrites.items, flow.creates,
        problem.predecessors.start, problem.predecessors.items, problem.successors.start, problem.successors.items,
        flow.bytes, flow.held, flow.stateful, flow.updated, flow.kept,
        problem.seconds, copy_seconds(problem), problem.copies.shared,
    )  # fmt: skip


def blank_choices(problem: Problem, order: Ints) -> Choices:
    """Nobody is ever away but who must be, and nothing is taken over."""
    rows = len(problem.flow.touches.items) + problem.storages
    nobody = np.zeros(problem.storages, np.bool_)
    return Choices(order.copy(), nobody, np.full(problem.ops, -1, np.int32), np.zeros((rows, 5), np.int32))


def choices_of_draft(problem: Problem, draft: Draft) -> Choices:
    """What a draft decides."""
    found, uses, gaps = blank_choices(problem, draft.order), draft.uses, draft.gaps
    touched = np.diff(uses.start) > 0
    found.resident[:] = draft.resident & touched
    found.donor[draft.order] = draft.inherits
    for s, release, reload, use in zip(
        gaps.storage.tolist(), gaps.release.tolist(), gaps.reload.tolist(), gaps.use.tolist(), strict=True
    ):
        slots = uses.slot[uses.start[s] : uses.start[s + 1]]
        row = uses.start[s] + s + (len(slots) if use == NEVER else np.searchsorted(slots, use))
        found.spans[row, :3] = 1, max(release, 0), min(reload, problem.ops)
    return found


def choices_of_plan(problem: Problem, plan: SwapPlan) -> Choices:
    """What a plan decides."""
    found = blank_choices(problem, np.array(plan.order, np.int32))
    flow, uses = problem.flow, uses_of(found.order, problem.flow)
    arriving = {copy.storage for copy in plan.swap_ins if copy.start == 0}
    where: dict[int, list[Residency]] = {}
    for stay in sorted(plan.residencies, key=lambda stay: stay.start):
        where.setdefault(stay.storage, []).append(stay)
    for s, stays in where.items():
        slots = uses.slot[uses.start[s] : uses.start[s + 1]]
        if not len(slots):
            continue
        row = uses.start[s] + s
        found.resident[s] = flow.held[s] and stays[0].start == 0 and s not in arriving
        if flow.held[s] and not found.resident[s]:
            found.spans[row, :3] = 1, 0, stays[0].start
        for stay, later in pairwise(stays):
            found.spans[row + np.searchsorted(slots, stay.stop), :3] = 1, stay.stop, later.start
        if (flow.stateful[s] and not found.resident[s]) or (flow.kept[s] and stays[-1].stop < problem.ops):
            found.spans[row + len(slots), :3] = 1, stays[-1].stop, problem.ops
    for slot, op in enumerate(plan.order):
        made = flow.creates[op]
        for s in flow.overwrites.items[flow.overwrites.start[op] : flow.overwrites.start[op + 1]].tolist():
            if made in where and s in where and (where[s][-1].stop, where[s][-1].offset) == (
                slot, where[made][0].offset
            ):  # fmt: skip
                found.donor[op] = s
    outs = [(copy.storage, copy.release, copy.release) for copy in plan.swap_outs]
    ins = [(copy.storage, copy.start, copy.use) for copy in plan.swap_ins]
    for column, queue in ((OUT_RANK, outs), (IN_RANK, ins)):
        key = 0
        for s, slot, deadline in queue:
            key = max(key + 1, FINE * deadline)
            slots = uses.slot[uses.start[s] : uses.start[s + 1]]
            found.spans[uses.start[s] + s + np.searchsorted(slots, slot), column] = key - FINE * deadline
    return found
