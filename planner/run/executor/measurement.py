"""Measurements of a step: its timeline, and the scratch memory of its ops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from planner.errors import StowageError
from planner.graph import Graph, Op
from planner.plan import COMMUNICATION, COMPUTE, SWAP_IN, SWAP_OUT, PlanIndex, SwapPlan, Timeline, memory_over_time
from planner.profile import signature
from planner.program import BoundCall, backend_of
from planner.run.devices.device import RuntimeDevice
from planner.units import format_apart, format_bytes

Span = tuple[float, float]
_LEAST_SECONDS = 1e-9  # that an op takes, so that ops without a prediction share their segment's time evenly


class Temporaries:
    """Checks what ops take outside of the arena against what the plan has for it.

    It is measured in a run's first step: their scratch memory once per signature, and what libraries keep. Both must
    fit between the plan's peak and its budget. Where a CPU stands in for a device, an op's workspace in the arena
    counts for its scratch memory, and only the excess must fit.

    Args:
        graph: with the plan's workspaces.
        plan: the plan.
        device: what runs it.

    Attributes:
        scratch_bytes: the most scratch memory of an op so far, where it lies outside of the arena.
        library_bytes: what libraries have kept in the first step.
        top_bytes: the most device memory that the arena and what lies outside of it have taken together so far; 0
            if no op has used any.
    """

    def __init__(self, graph: Graph, plan: SwapPlan, device: RuntimeDevice) -> None:
        self._graph, self._plan, self._device = graph, plan, device
        self._is_outside = backend_of(graph.device).scratch_is_outside
        self._offsets: dict[int, int] = {}  # by storage, the highest
        for residency in plan.residencies:
            self._offsets[residency.storage] = max(residency.offset, self._offsets.get(residency.storage, 0))
        slots: dict[tuple[str, bool], list[int]] = defaultdict(list)
        ran: set[int] = set()
        for slot, op in enumerate(plan.order):
            another_call = op in ran and bool(graph.ops[op].first_run_only)
            slots[signature(graph, graph.ops[op]), another_call].append(slot)
            ran.add(op)
        self._alike = {alike[0]: alike for alike in slots.values()}
        self._scratch: dict[int, int] = {}  # by slot, where it lies outside of the arena
        self._before = device.allocated_bytes()
        self.scratch_bytes = self.library_bytes = self.top_bytes = 0

    def begin(self) -> None:
        """Begin the first step: what is allocated by now is neither an op's nor kept by a library."""
        self._before = self._device.allocated_bytes()

    def run(self, slot: int, bound: BoundCall) -> None:
        """Run the call in a slot, measured if it is the first with its signature.

        Raises:
            StowageError: its scratch memory does not fit.
        """
        if slot not in self._alike:
            self._device.compute.launch(*bound)
            return
        used = self._device.scratch_bytes(*bound)
        for other in self._alike[slot]:
            op = self._graph.ops[self._plan.order[other]]
            if self._is_outside:
                self._scratch[other] = used
                self._account_outside(op, used)
            else:
                self._account(op, used)

    def end(self) -> None:
        """Count what libraries keep, once all calls of the first step are made.

        Raises:
            StowageError: it does not fit.
        """
        self.library_bytes = max(0, self._device.allocated_bytes() - self._before)
        if not self.library_bytes:
            return
        total = self._plan.peak_bytes + self.scratch_bytes + self.library_bytes
        self.top_bytes = max(self.top_bytes, total)
        if total > self._plan.budget_bytes:
            arena, scratch, kept, more, budget = map(
                format_bytes,
                (self._plan.peak_bytes, self.scratch_bytes, self.library_bytes, total - self._plan.budget_bytes,
                 self._plan.budget_bytes),
            )  # fmt: skip
            raise StowageError(
                f"libraries keep {kept} of the GPU's memory here, beside an arena of {arena} and up to {scratch} of "
                f"temporary memory: {more} more than the plan's budget of {budget}; {_make_room(total)}"
            )

    def missing_bytes(self, slots: Collection[int]) -> int:
        """What goes over the budget where the scratch memory of some calls lies apart from that of the others."""
        these = max((self._scratch.get(slot, 0) for slot in slots), default=0)
        others = max((used for slot, used in self._scratch.items() if slot not in slots), default=0)
        return max(0, self._plan.peak_bytes + these + others + self.library_bytes - self._plan.budget_bytes)

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
                    f"has {has} for it and nothing to spare; plan for {self._device.name} with what ops take here, as "
                    f'measured by planner.profile.prepare(step, "{self._device.name}")'
                )
            self.top_bytes = max(self.top_bytes, total)

    def _account_outside(self, op: Op, used: int) -> None:
        total = self._plan.peak_bytes + used
        if total > self._plan.budget_bytes:
            takes, arena, more, budget = map(
                format_bytes,
                (used, self._plan.peak_bytes, total - self._plan.budget_bytes, self._plan.budget_bytes),
            )
            raise StowageError(
                f"{op.name} takes {takes} of temporary memory here, beside an arena of {arena}: {more} more than the "
                f"plan's budget of {budget}; {_make_room(total)}"
            )
        self.scratch_bytes = max(self.scratch_bytes, used)
        if used:
            self.top_bytes = max(self.top_bytes, total)


def _make_room(total: int) -> str:
    return (
        'plan for the graph that planner.profile.prepare(step, "auto") returns, which counts that, or allow at least '
        f"{total} bytes"
    )


class Clock:
    """Builds timelines of a plan from measured times.

    Args:
        index: of the plan.
        sizes: number of calls in each segment of the step program.
        marks_ops: whether there is a mark after every call, or only after the last of each segment.
    """

    def __init__(self, index: PlanIndex, sizes: Sequence[int], *, marks_ops: bool) -> None:
        self._index = index
        # one mark before each segment and one after each call or its last: a call runs between a mark and the next
        groups = [[1] * size for size in sizes] if marks_ops else [[size] if size else [] for size in sizes]
        starts = [mark for first, group in _offsets(groups) for mark in range(first, first + len(group))]
        self._starts = np.repeat(np.array(starts, np.int64), [size for group in groups for size in group])
        # which part of the time between those marks a call takes, as the plan predicts
        shares = np.maximum(index.plan.predicted.compute @ [-1.0, 1.0], _LEAST_SECONDS)
        opens = np.append(True, self._starts[1:] != self._starts[:-1])[: len(self._starts)]
        before = np.cumsum(shares) - shares
        of_group = np.cumsum(opens) - 1
        total = np.bincount(of_group, shares)[of_group]
        self._from = (before - before[opens][of_group]) / total
        self._until = np.where(np.append(opens[1:], True), 1.0, np.append(self._from[1:], 1.0))

    def timeline(
        self, marks: Sequence[float], outs: list[Span], ins: list[Span], communications: list[Span]
    ) -> Timeline:
        """The timeline of a step.

        Args:
            marks: seconds, per segment one before its first call and those after its calls, then one for the end of
                the step.
            outs, ins: spans of the copies.
            communications: spans of the collectives on the communication stream.
        """
        stamps = np.array(marks, np.float64)
        start, stop = stamps[self._starts], stamps[self._starts + 1]
        until = np.where(self._until == 1.0, stop, start + (stop - start) * self._until)
        compute = np.stack([start + (stop - start) * self._from, until], axis=1)
        swap_out, swap_in = (np.array(spans, np.float64).reshape(-1, 2) for spans in (outs, ins))
        spans = {COMPUTE: compute, SWAP_OUT: swap_out, SWAP_IN: swap_in}
        if communications:
            spans[COMMUNICATION] = np.array(communications, np.float64)
        return Timeline(float(stamps[-1]), spans, {COMPUTE.device: memory_over_time(self._index, spans)})


def _offsets(groups: Sequence[list[int]]) -> Iterator[tuple[int, list[int]]]:
    first = 0
    for group in groups:
        yield first, group
        first += len(group) + 1
