"""Which collectives of a plan run beside its ops, and until when what they touch stays for them.

A collective may go on until an op needs its result, as long as the plan has room for its input and its scratch memory
until then. They stay at their offsets as long as nothing else is put there; if that is too short, they are put where
nothing else is for longer, within the budget. Nothing else moves, so a plan is never worse for it. On a machine that
does not communicate beside its ops, nothing is kept and all collectives are ops of the compute lane.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.graph import Graph, Op
from planner.machine import is_collective
from planner.plan import Communication, Residency, SwapIn, SwapOut
from planner.swap.problem.problem import Problem


def run_beside(
    problem: Problem, order: Sequence[int], residencies: Sequence[Residency], outs: Sequence[SwapOut],
    ins: Sequence[SwapIn],
) -> tuple[list[Residency], list[Communication]]:  # fmt: skip
    """The communication queue of a plan, and its residencies with what that needs.

    Args:
        problem: what is planned.
        order: the op of the graph in each slot.
        residencies, outs, ins: where the graph's storages are, and their copies.
    """
    can = problem.machine.communicates_beside
    slots = [slot for slot, op in enumerate(order) if can and is_collective(problem.graph.ops[op])]
    if not slots:
        return list(residencies), []
    room = _Room(problem, order, residencies, outs, ins)
    until = {slot: _needed_by(problem.graph, order, slot) for slot in slots}
    for slot, use in until.items():
        until[slot] = room.keep(slot, use) if use > slot + 1 else slot + 1
    # One that an op waits for at once is made by compute, after all before it: the order of collectives stays.
    beside: list[Communication] = []
    last = len(order)
    for slot in reversed(slots):
        use = min(until[slot], last)
        if use > slot + 1:
            beside.append(Communication(slot, use))
        else:
            last = slot
    return room.residencies(), beside[::-1]


def _needed_by(graph: Graph, order: Sequence[int], slot: int) -> int:
    """The first later slot whose op needs what a collective writes, or changes what it reads; or the end."""
    own = order[slot]
    reads, writes = ({s for s in some[own] if graph.storages[s].bytes} for some in (graph.reads, graph.writes))
    for later in range(slot + 1, len(order)):
        op = order[later]
        if writes & {*graph.reads[op], *graph.writes[op]} or reads & {*graph.writes[op]}:
            return later
    return len(order)


class _Room:
    """Residencies of which some stay longer than their ops need them."""

    def __init__(
        self, problem: Problem, order: Sequence[int], residencies: Sequence[Residency], outs: Sequence[SwapOut],
        ins: Sequence[SwapIn],
    ) -> None:  # fmt: skip
        self.problem, self.graph, self.order = problem, problem.graph, order
        rows = np.array([(r.storage, r.start, r.stop, r.offset) for r in residencies], np.int64).reshape(-1, 4)
        self.storage, self.start, self.stop, self.offset = rows.T.copy()
        self.bytes = problem.arrays.bytes[self.storage]
        self.outs = {(copy.storage, copy.release): copy for copy in outs}
        self.ins = {(copy.storage, copy.start) for copy in ins}

    def residencies(self) -> list[Residency]:
        """All of them."""
        rows = zip(*(column.tolist() for column in (self.storage, self.start, self.stop, self.offset)), strict=True)
        return [Residency(*row) for row in rows]

    def keep(self, slot: int, use: int) -> int:
        """Keep what the collective in a slot touches in its place; returns until when, at most until `use`."""
        op = self.graph.ops[self.order[slot]]
        touched = self._touched(op, slot)
        stops = self.stop[touched]
        for row in touched:
            use = self._longest(row, slot, use, written=int(self.storage[row]) in self.graph.writes[op.id])
            self._stay(row, use)
        self.stop[touched] = np.maximum(stops, np.minimum(self.stop[touched], use))  # none longer than all of them
        return use

    def _touched(self, op: Op, slot: int) -> list[int]:
        storages = {*self.graph.reads[op.id], *self.graph.writes[op.id], op.workspace}
        there = (self.start <= slot) & (slot < self.stop) & (self.bytes > 0)
        return [row for row in np.flatnonzero(there).tolist() if int(self.storage[row]) in storages]

    def _longest(self, row: int, slot: int, use: int, *, written: bool) -> int:
        """Until when a residency can stay where it is, or be put elsewhere to stay."""
        out = self.outs.get((int(self.storage[row]), int(self.stop[row])))
        if out is not None:  # what is written is copied out once the op in slot `use` has waited for it
            return min(use, out.ready if written else out.release)
        if use <= self.stop[row]:
            return use
        if self.graph.storages[int(self.storage[row])].live_in:  # the next step finds it where this one does
            use = min(use, len(self.order) - 1)
        here = self._free_until(row, int(self.offset[row]), use)
        if here == use or not self._movable(row):
            return here
        low, high = max(here, slot + 1), use
        while low < high:  # the longer, the fewer places
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._place(row, middle) >= 0 else (low, middle - 1)
        return low

    def _stay(self, row: int, use: int) -> None:
        if use <= self.stop[row]:
            return
        if self._free_until(row, int(self.offset[row]), use) < use:
            self.offset[row] = self._place(row, use)
        self.stop[row] = use

    def _free_until(self, row: int, offset: int, use: int) -> int:
        """Until when nothing else, nor another residency of the same storage, begins at some bytes."""
        over = (self.offset < offset + self.bytes[row]) & (offset < self.offset + self.bytes) & (self.bytes > 0)
        later = (over | (self.storage == self.storage[row])) & (self.start >= self.stop[row])
        return int(min(use, self.start[later].min(initial=use)))

    def _movable(self, row: int) -> bool:
        """Whether a residency may be at another offset: an op begins it in a buffer of its own, and no copy does."""
        storage, start, stop = int(self.storage[row]), int(self.start[row]), int(self.stop[row])
        if self.graph.storages[storage].live_in or storage in self.graph.output_storages:
            return False
        if (storage, start) in self.ins or (storage, stop) in self.outs:
            return False
        same = (self.offset == self.offset[row]) & (self.bytes == self.bytes[row])
        same[row] = False
        return not bool((same & ((self.stop == start) | (self.start == stop))).any())

    def _place(self, row: int, use: int) -> int:
        """The lowest offset at which a residency could stay until `use`, -1 for none."""
        others = (self.start < use) & (self.stop > self.start[row]) & (self.bytes > 0)
        others[row] = False
        if (others & (self.storage == self.storage[row])).any():
            return -1
        low = 0
        for place in np.flatnonzero(others)[np.argsort(self.offset[others], kind="stable")].tolist():
            if self.offset[place] - low >= self.bytes[row]:
                return low
            low = max(low, int(self.offset[place] + self.bytes[place]))
        return low if self.problem.memory - low >= self.bytes[row] else -1
