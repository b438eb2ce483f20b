"""What a step did: when everything happened, and how much temporary memory it took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from planner.capture.rewrites import Bound
from planner.errors import StowageError
from planner.graph import Graph, Op
from planner.machine.signatures import signature
from planner.machine.temporary import temporary_bytes
from planner.plan.swap_plan import SwapPlan
from planner.plan.timeline import Timeline
from planner.units import format_apart

Span = tuple[float, float]


class Temporaries:
    """Holds the temporary memory of ops, which lies outside of the arena, against what the plan has for it.

    It is measured in a run's first step, once per signature. What goes beyond an op's workspace must fit between the
    plan's peak and its budget.

    Args:
        graph: with the plan's workspaces.
        plan: the plan.

    Attributes:
        top_bytes: the device memory that the arena and temporary memory took together so far, as far as the latter
            is what decides.
    """

    def __init__(self, graph: Graph, plan: SwapPlan) -> None:
        self._graph, self._plan = graph, plan
        self._offsets = {stay.storage: stay.offset for stay in plan.residencies}
        slots: dict[str, list[int]] = defaultdict(list)
        for slot, op in enumerate(plan.order):
            slots[signature(graph, graph.ops[op])].append(slot)
        self._alike = {alike[0]: alike for alike in slots.values()}
        self.top_bytes = 0

    def run(self, slot: int, bound: Bound) -> None:
        """Run the call in a slot, measured where it is the first of its kind.

        Raises:
            StowageError: its temporary memory does not fit.
        """
        function, args, kwargs = bound
        if slot not in self._alike:
            function(*args, **kwargs)
            return
        used = temporary_bytes(lambda: function(*args, **kwargs))
        for other in self._alike[slot]:
            self._account(self._graph.ops[self._plan.order[other]], used)

    def _account(self, op: Op, used: int) -> None:
        reserved = self._graph.workspace_bytes(op.id)
        if 0 < used <= reserved:
            self.top_bytes = max(self.top_bytes, self._offsets[op.workspace] + used)
        elif used > reserved:
            total = self._plan.peak_bytes + used - reserved
            if total > self._plan.budget_bytes:
                has, takes = format_apart(reserved, used)
                raise StowageError(
                    f"{op.name} takes {takes} of temporary memory here, and the plan, made for {self._plan.machine}, "
                    f"has {has} for it and nothing to spare; plan for cpu, with the op costs measured on this machine"
                )
            self.top_bytes = max(self.top_bytes, total)


class Clock:
    """Makes timelines of a plan from the times that were measured.

    Args:
        graph: with the plan's workspaces.
        plan: the plan.
        sizes: calls in each segment of the walk.
    """

    def __init__(self, graph: Graph, plan: SwapPlan, sizes: Sequence[int]) -> None:
        # a mark before each segment and one after each call: where the starts are, the stops follow
        self._starts = np.array([m for first, size in _offsets(sizes) for m in range(first, first + size)], np.int64)
        n = len(plan.order)
        arrivals = {(copy.storage, copy.start): index for index, copy in enumerate(plan.swap_ins)}
        departures = {(copy.storage, copy.release): index for index, copy in enumerate(plan.swap_outs)}
        begins, ends, leaving, gained, lost = [], [], [], [], []
        for stay in plan.residencies:
            facts = graph.storages[stay.storage]
            copy = arrivals.get((stay.storage, stay.start), -1)
            # of the times [0, op starts, swap-in starts]
            begins.append(1 + n + copy if copy >= 0 else 0 if facts.held else 1 + stay.start)
            gained.append(facts.bytes)
            copy = departures.get((stay.storage, stay.stop), -1)
            if stay.stop < n or copy >= 0:
                # of the times [0, op stops], and of [0, swap-out stops]: memory is free when both have passed
                ends.append(stay.stop)
                leaving.append(1 + copy)
                lost.append(facts.bytes)
        self._begins, self._ends, self._leaving = (np.array(column, np.int64) for column in (begins, ends, leaving))
        # the first change is none: a step's memory is known from its start, also where nothing is held
        self._changes = np.concatenate([[0], np.array(gained, np.int64), -np.array(lost, np.int64)])

    def timeline(self, marks: Sequence[float], outs: list[Span], ins: list[Span]) -> Timeline:
        """The timeline of a step.

        Args:
            marks: seconds, per segment one before its first call and one after each, then one for the step's end.
            outs, ins: spans of the copies.
        """
        stamps = np.array(marks, np.float64)
        compute = np.stack([stamps[self._starts], stamps[self._starts + 1]], axis=1)
        swap_out, swap_in = (np.array(spans, np.float64).reshape(-1, 2) for spans in (outs, ins))
        begins = np.concatenate([[0.0], compute[:, 0], swap_in[:, 0]])[self._begins]
        done, gone = np.append(0.0, compute[:, 1]), np.append(0.0, swap_out[:, 1])
        ends = np.maximum(done[self._ends], gone[self._leaving])
        times = np.concatenate([[0.0], begins, ends])
        order = np.lexsort((self._changes, times))
        levels = np.cumsum(self._changes[order])
        times = times[order]
        settled = np.append(times[1:] != times[:-1], True)  # at one moment, what holds after all of its changes
        return Timeline(float(stamps[-1]), compute, swap_out, swap_in, times[settled], levels[settled])


def _offsets(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    first = 0
    for size in sizes:
        yield first, size
        first += size + 1
