"""The sums of a span of a step, of time, of addresses or of both: what is in it, and what its streams do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.errors import StowageError
from planner.graph import Graph, Module, module_tree
from planner.plan import PlanIndex, SwapPlan, Timeline, own_graph, require_own_timeline
from planner.units import bytes_label, several
from widgets.info.argument_types import require_graph
from widgets.info.collectives import get_collectives
from widgets.info.colour_groups import GROUP_OF, STACK, Group
from widgets.info.residency_spans import Axis, Flags, Floats, ResidencySpans, spans_of

#: The largest module is opened until there are so many.
_ENOUGH = 6


@dataclass(frozen=True, eq=False)
class SpanSums:
    """What is in a span. A storage is in it if it is at some of its addresses for some of its time.

    Args:
        name: what was captured.
        seconds: from when to when.
        addresses: from which byte to which, or None for all.
        storages: ids of the storages that are in it, ascending.
        bytes: their size together.
        by_group: the same by group; groups without a storage are omitted.
        by_module: the same by module, the largest first: as few modules as say where the bytes are. `"x itself"` is
            what belongs to `x` and to no module below it.
        most_bytes: the most that they hold at once in the span.
        bytes_out, bytes_in: how much of them is swapped out and in during it.
        compute_seconds, swap_out_seconds, swap_in_seconds, collective_seconds: for how long of it each stream is busy.
    """

    name: str
    seconds: tuple[float, float]
    addresses: tuple[int, int] | None
    storages: tuple[int, ...]
    bytes: int
    by_group: Mapping[Group, int]
    by_module: Mapping[str, int]
    most_bytes: int
    bytes_out: float
    bytes_in: float
    compute_seconds: float
    swap_out_seconds: float
    swap_in_seconds: float
    collective_seconds: float

    @property
    def summary(self) -> str:
        """The sums in one sentence."""
        if not self.storages:
            return f"{self.name} holds nothing in this span."
        verb = "is" if len(self.storages) == 1 else "are"
        held = ", ".join(f"{bytes_label(size)} of {group}" for group, size in self.by_group.items())
        return (
            f"{several(len(self.storages), 'storage')} {verb} in this span, {held}; "
            f"at most {bytes_label(self.most_bytes)} at once."
        )


def get_span_sums(
    graph: Graph,
    plan: SwapPlan,
    span: tuple[float, float] | None = None,
    addresses: tuple[int, int] | None = None,
    timeline: Timeline | None = None,
    axis: Axis = "seconds",
) -> SpanSums:
    """Sum up what is in a span of a step.

    Args:
        graph: the step.
        plan: its plan.
        span: from when to when; in slots, from when the first begins until the one before the last ends. By default
            the whole step.
        addresses: from which byte of the arena to before which; by default all.
        timeline: seconds for the plan's slots; by default its predicted timeline.
        axis: whether `span` is in seconds or in slots.

    Raises:
        StowageError: `graph` is no graph, the plan or timeline is for another graph, or a span ends before it begins.
    """
    require_graph(graph)
    timeline = plan.predicted if timeline is None else timeline
    graph = own_graph(graph, plan)
    require_own_timeline(plan, timeline)
    for ends in (span, addresses):
        if ends is not None and ends[0] > ends[1]:
            raise StowageError(f"a span begins before it ends, got {ends[0]:g} to {ends[1]:g}")
    start, stop = _seconds(timeline, span, axis)
    spans = spans_of(PlanIndex(graph, plan), timeline)
    low, high = (-np.inf, np.inf) if addresses is None else addresses
    inside = (spans.start < stop) & (spans.stop > start) & (spans.offset < high) & (spans.offset + spans.bytes > low)
    storages = np.unique(spans.storage[inside]).tolist()
    collectives = get_collectives(graph, plan, timeline)
    computed = np.array([op not in set(collectives.op.tolist()) for op in plan.order], np.bool_)
    sizes = {storage: graph.storages[storage].bytes for storage in storages}
    return SpanSums(
        graph.name, (start, stop), addresses, tuple(storages), sum(sizes.values()), _by_group(graph, sizes),
        _by_module(graph, sizes), _most(spans, inside), _copied(spans, inside, spans.copy_out, start, stop),
        _copied(spans, inside, spans.copy_in, start, stop), _busy(timeline.compute[computed], start, stop),
        _busy(timeline.swap_out, start, stop), _busy(timeline.swap_in, start, stop),
        _busy(collectives.spans, start, stop),
    )  # fmt: skip


def _seconds(timeline: Timeline, span: tuple[float, float] | None, axis: Axis) -> tuple[float, float]:
    if span is None:
        return 0.0, timeline.seconds
    if axis == "seconds":
        return float(span[0]), float(span[1])
    first, end = (min(max(int(slot), 0), len(timeline.compute)) for slot in span)
    if first == end:
        return 0.0, 0.0
    return float(timeline.compute[first, 0]), float(timeline.compute[end - 1, 1])


def _by_group(graph: Graph, sizes: Mapping[int, int]) -> dict[Group, int]:
    sums = dict.fromkeys(STACK, 0)
    for storage, size in sizes.items():
        sums[GROUP_OF[graph.storages[storage].kind]] += size
    return {group: size for group, size in sums.items() if size}


def _by_module(graph: Graph, sizes: Mapping[int, int]) -> dict[str, int]:
    """Bytes by module; the largest with others below it is opened until there are enough."""
    own, all_bytes, place = dict[str, int](), dict[str, int](), dict[str, int]()
    modules = list(module_tree(graph).walk())
    for number, module in enumerate(modules):
        own[module.path] = sum(sizes.get(storage, 0) for storage in module.storages)
        place[module.path] = number
    for module in reversed(modules):
        all_bytes[module.path] = own[module.path] + sum(all_bytes[child.path] for child in module.children)

    def below(module: Module) -> list[Module]:
        return [child for child in module.children if all_bytes[child.path]]

    closed, opened = [module for module in modules[:1] if all_bytes[module.path]], list[Module]()
    while len(closed) + len(opened) < _ENOUGH and any(map(below, closed)):
        largest = min(filter(below, closed), key=lambda module: (-all_bytes[module.path], place[module.path]))
        closed = [module for module in closed if module is not largest] + below(largest)
        opened += [largest] if own[largest.path] else []
    sums = [(all_bytes[module.path], place[module.path], module.path or graph.name) for module in closed]
    sums += [
        (own[module.path], place[module.path], f"{module.path} itself" if module.path else "in no module")
        for module in opened
    ]
    return {name: size for size, _, name in sorted(sums, key=lambda entry: (-entry[0], entry[1]))}


def _most(spans: ResidencySpans, inside: Flags) -> int:
    """The most bytes at once; all are there in the span at some time, so outside of it there are never more."""
    moments, at = np.unique(np.concatenate([spans.start[inside], spans.stop[inside]]), return_inverse=True)
    change = np.zeros(len(moments), np.int64)
    np.add.at(change, at, np.concatenate([spans.bytes[inside], -spans.bytes[inside]]))
    return int(change.cumsum().max(initial=0))


def _copied(spans: ResidencySpans, inside: Flags, copies: Floats, start: float, stop: float) -> float:
    """Bytes of the copies that begin or end some residencies; one that is partly in the span counts in part."""
    length, overlap = copies[:, 1] - copies[:, 0], _overlap(copies, start, stop)
    counted = inside & (copies[:, 0] < stop) & (copies[:, 1] > start)  # none where there is no copy
    share = np.divide(overlap, length, out=np.ones(len(length)), where=length > 0)
    return float((spans.bytes * share)[counted].sum())


def _busy(stretches: Floats, start: float, stop: float) -> float:
    return float(np.maximum(_overlap(stretches, start, stop), 0).sum())


def _overlap(stretches: Floats, start: float, stop: float) -> NDArray[np.float64]:
    return np.minimum(stretches[:, 1], stop) - np.maximum(stretches[:, 0], start)
