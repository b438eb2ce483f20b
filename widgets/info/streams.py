"""What the three streams do over a step: compute, copies out, copies in; where compute has to wait, and for what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.graph import Graph, Phase
from planner.plan import SwapPlan, Timeline
from widgets.info.groups import GROUP_OF, Group
from widgets.info.stays import Floats, Ints, require_same_step
from widgets.info.units import count_text, percent_text, seconds_text


@dataclass(frozen=True, slots=True)
class Copy:
    """One transfer: a storage by id, name, what it is for, and size in bytes; from `start` until `stop` in seconds."""

    storage: int
    name: str
    group: Group
    bytes: int
    start: float
    stop: float


@dataclass(frozen=True, slots=True)
class Stall:
    """Compute waits for a copy from `start` until `stop`, in seconds; the time between two ops is no stall.

    Args:
        before: name of the op that waits; empty at the end of the step, which waits for all copies.
        cause: what it waits for, of several copies the one that ends last.
        op, storage: that op, or -1, and what is copied.
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
        op: `[ops]`, the op in each slot.
        op_names: `[ops]`, their names.
        phases: `[ops]`, their phases.
        compute: `[ops, 2]`, their start and stop in seconds.
        out, into: copies to the host and to the device, in queue order.
        stalls: in order of time.
        measured: whether the timeline was measured; otherwise it was predicted.
    """

    name: str
    seconds: float
    op: Ints
    op_names: tuple[str, ...]
    phases: tuple[Phase, ...]
    compute: Floats
    out: tuple[Copy, ...]
    into: tuple[Copy, ...]
    stalls: tuple[Stall, ...]
    measured: bool

    @property
    def stall_seconds(self) -> float:
        """Time that compute waits, all together."""
        return sum(stall.stop - stall.start for stall in self.stalls)

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        verb = "took" if self.measured else "is predicted to take"
        if self.stalls:
            waits = f"compute waits {count_text(len(self.stalls), 'time')}, {seconds_text(self.stall_seconds)} together"
        else:
            waits = "compute never waits"
        if not self.out and not self.into:
            return f"The step {verb} {seconds_text(self.seconds)}; nothing is swapped and {waits}."
        busy = [sum(copy.stop - copy.start for copy in copies) / self.seconds for copies in (self.out, self.into)]
        return (
            f"The step {verb} {seconds_text(self.seconds)}; {waits}; "
            f"the link is busy {percent_text(busy[0])} of it outwards and {percent_text(busy[1])} inwards."
        )


def get_streams(graph: Graph, plan: SwapPlan, timeline: Timeline | None = None) -> Streams:
    """Lay out a timeline.

    Args:
        graph: the step.
        plan: its plan, which says what each span is.
        timeline: a measured one; the plan's prediction if none is given.

    Raises:
        StowageError: the plan or timeline is for another graph.
    """
    shown = plan.predicted if timeline is None else timeline
    require_same_step(graph, plan, shown)
    out = tuple(_copy(graph, swap.storage, span) for swap, span in zip(plan.swap_outs, shown.swap_out, strict=True))
    into = tuple(_copy(graph, swap.storage, span) for swap, span in zip(plan.swap_ins, shown.swap_in, strict=True))
    ops = [graph.ops[op] for op in plan.order]
    return Streams(
        graph.name, shown.seconds, np.array(plan.order, np.int64), tuple(op.name for op in ops),
        tuple(op.phase for op in ops), shown.compute, out, into, _stalls(graph, plan, shown, out, into),
        timeline is not None and timeline is not plan.predicted,
    )  # fmt: skip


def _copy(graph: Graph, storage: int, span: Floats) -> Copy:
    it = graph.storages[storage]
    return Copy(storage, it.name, GROUP_OF[it.kind], it.bytes, float(span[0]), float(span[1]))


def _stalls(
    graph: Graph, plan: SwapPlan, timeline: Timeline, out: tuple[Copy, ...], into: tuple[Copy, ...]
) -> tuple[Stall, ...]:
    starts = np.append(timeline.compute[:, 0], timeline.seconds)
    stops = np.append(0.0, timeline.compute[:, 1])
    # What the op in a slot waits for is due in that very slot: whatever was due earlier is done by then.
    due: dict[int, list[tuple[float, str, int]]] = {}
    for swap_out, copy in zip(plan.swap_outs, out, strict=True):
        due.setdefault(swap_out.release, []).append((copy.stop, f"{copy.name} to leave", copy.storage))
    for swap_in, copy in zip(plan.swap_ins, into, strict=True):
        due.setdefault(swap_in.use, []).append((copy.stop, f"{copy.name} to arrive", copy.storage))
    last = max((*out, *into), key=lambda copy: copy.stop, default=None)
    if last is not None:
        due.setdefault(len(plan.order), []).append((last.stop, "the last copies to end", last.storage))
    stalls = []
    for slot, causes in sorted(due.items()):
        end, cause, storage = max(causes)
        if starts[slot] > stops[slot] and end > stops[slot]:
            op = plan.order[slot] if slot < len(plan.order) else -1
            before = graph.ops[op].name if op >= 0 else ""
            stalls.append(Stall(float(stops[slot]), float(starts[slot]), before, cause, op, storage))
    return tuple(stalls)
