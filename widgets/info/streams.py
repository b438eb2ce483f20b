"""The three streams over a step: compute, copies out, copies in; and the stalls of compute with their causes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.graph import Graph, Phase
from planner.plan import PlanIndex, SwapPlan, Timeline, compute_waits, own_graph, require_own_timeline
from planner.units import format_percent, format_seconds, several
from widgets.info.argument_types import require_graph, require_plan
from widgets.info.colour_groups import GROUP_OF, Group
from widgets.info.recompute_text import recompute_text
from widgets.info.residency_spans import Flags, Floats, Ints


@dataclass(frozen=True, slots=True)
class Copy:
    """One transfer: id, name, group and size in bytes of the storage; from `start` until `stop` in seconds."""

    storage: int
    name: str
    group: Group
    bytes: int
    start: float
    stop: float


@dataclass(frozen=True, slots=True)
class Stall:
    """A wait of compute for a copy, from `start` until `stop` in seconds; the time between two ops is not a stall.

    Args:
        before: name of the op that waits; empty at the end of the step, where compute waits for all copies.
        cause: the copy it waits for; of several, the one that ends last.
        op, storage: that op, or -1, and the storage copied.
    """

    start: float
    stop: float
    before: str
    cause: str
    op: int
    storage: int


@dataclass(frozen=True, eq=False)
class Streams:
    """The streams of one step.

    Args:
        name: what was captured.
        seconds: length of the step.
        op: `[slots]`, the op in each slot.
        op_names: `[slots]`, their names.
        phases: `[slots]`, their phases.
        again: `[slots]`, whether the op ran before in the same step.
        compute: `[slots, 2]`, their start and stop in seconds.
        out, into: copies to the host and to the device, in queue order.
        stalls: in order of time.
        measured: whether the timeline is measured rather than predicted.
    """

    name: str
    seconds: float
    op: Ints
    op_names: tuple[str, ...]
    phases: tuple[Phase, ...]
    again: Flags
    compute: Floats
    out: tuple[Copy, ...]
    into: tuple[Copy, ...]
    stalls: tuple[Stall, ...]
    measured: bool

    @property
    def stall_seconds(self) -> float:
        """Total time that compute waits."""
        return sum(stall.stop - stall.start for stall in self.stalls)

    @property
    def repeats(self) -> str:
        """How many ops run again and what that costs, in words; nothing where none do."""
        spent = self.compute[:, 1] - self.compute[:, 0]
        return recompute_text(int(self.again.sum()), float(spent[self.again].sum()), float(spent.sum()))

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        verb = "took" if self.measured else "is predicted to take"
        if self.stalls:
            waits = f"compute waits {several(len(self.stalls), 'time')}, {format_seconds(self.stall_seconds)} together"
        else:
            waits = "compute never waits"
        if self.again.any():
            waits += f"; it {self.repeats}"
        if not self.out and not self.into:
            return f"The step {verb} {format_seconds(self.seconds)}; nothing is swapped and {waits}."
        busy = [sum(copy.stop - copy.start for copy in copies) / self.seconds for copies in (self.out, self.into)]
        return (
            f"The step {verb} {format_seconds(self.seconds)}; {waits}; "
            f"the link is busy {format_percent(busy[0])} of it outwards and {format_percent(busy[1])} inwards."
        )


def get_streams(graph: Graph, plan: SwapPlan, timeline: Timeline | None = None) -> Streams:
    """Lay out a timeline.

    Args:
        graph: the step.
        plan: its plan, which identifies each span.
        timeline: a measured timeline; by default the plan's prediction.

    Raises:
        StowageError: `graph` is no graph, or the plan or timeline is for another one.
    """
    require_graph(graph)
    require_plan(plan)
    shown = plan.predicted if timeline is None else timeline
    require_own_timeline(plan, shown)
    return streams_of(PlanIndex(own_graph(graph, plan), plan), shown)


def streams_of(index: PlanIndex, shown: Timeline) -> Streams:
    """Lay out a timeline of an indexed plan, which are known to be of one step.

    Args:
        index: of the plan.
        shown: measured or predicted times of its step.
    """
    graph, plan = index.graph, index.plan
    out = tuple(_copy(graph, swap.storage, span) for swap, span in zip(plan.swap_outs, shown.swap_out, strict=True))
    into = tuple(_copy(graph, swap.storage, span) for swap, span in zip(plan.swap_ins, shown.swap_in, strict=True))
    ops = [graph.ops[op] for op in plan.order]
    again = np.zeros(index.slots, np.bool_)
    again[list(index.repeats)] = True
    return Streams(
        graph.name, shown.seconds, np.array(plan.order, np.int64), tuple(op.name for op in ops),
        tuple(op.phase for op in ops), again, shown.compute, out, into, tuple(_stalls(index, shown)),
        shown is not plan.predicted,
    )  # fmt: skip


def _copy(graph: Graph, storage: int, span: Floats) -> Copy:
    it = graph.storages[storage]
    return Copy(storage, it.name, GROUP_OF[it.kind], it.bytes, float(span[0]), float(span[1]))


def _stalls(index: PlanIndex, timeline: Timeline) -> Iterator[Stall]:
    graph, order = index.graph, index.plan.order
    for wait in compute_waits(index, timeline):
        op = order[wait.slot] if wait.slot < len(order) else -1
        before = graph.ops[op].name if op >= 0 else ""
        yield Stall(wait.start, wait.stop, before, wait.cause(graph), op, wait.storage)
