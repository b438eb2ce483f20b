"""Plans in which ops run again, made by hand: what they make is dropped after the forward pass and made once more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from planner.graph import Graph, Phase, fingerprint
from planner.plan import HostResidency, Residency, SwapIn, SwapOut, SwapPlan, Timeline, device_queues
from tests.plan.plans import with_times
from tests.run.plans import ALIGNMENT

#: A storage that is swapped is away for at least so many slots, its copies among them.
_AWAY, _COPY = 8, 3


def recomputing_plan(
    graph: Graph, groups: Sequence[tuple[int, ...]], swapped: int = 0, order: Sequence[int] | None = None
) -> SwapPlan:
    """An order, with groups of ops once more, each before what it makes is first needed after the forward pass.

    Args:
        graph: of the step.
        groups: of `repeatable`.
        order: with each op once; None for the captured one.
        swapped: how many of the storages that stay are copied to the host meanwhile.
    """
    order = _order(graph, groups, order or range(len(graph.ops)))
    touches, made = _touches(graph, order)
    spans, outs, ins, homes = [], [], [], []
    for storage in graph.storages:
        slots = touches[storage.id]
        if storage.live_in or storage.id in graph.output_storages:
            spans.append((storage.id, 0 if storage.live_in else slots[0], len(order)))
            continue
        begins = [slot for slot in slots if slot in made[storage.id]]
        for begin, end in zip(begins, [*begins[1:], len(order)], strict=True):
            within = [slot for slot in slots if begin <= slot < end]
            spans.append((storage.id, begin, within[-1] + 1))
        gaps = [(back - left, left, back) for left, back in pairwise(slots)]
        gap, left, back = max(gaps, default=(0, 0, 0))
        if len(begins) == 1 and gap >= _AWAY and len(outs) < swapped and storage.bytes:
            *spans, (_, begin, stop) = spans
            spans += [(storage.id, begin, left + _COPY), (storage.id, back - _COPY, stop)]
            outs.append(SwapOut(storage.id, left, left + _COPY))
            ins.append(SwapIn(storage.id, back - _COPY, back))
            homes.append((storage.id, left, back))
    sizes = [storage.bytes for storage in graph.storages]
    residencies = [Residency(*row) for row in _placed(spans, sizes)]
    host = [HostResidency(*row) for row in _placed(homes, sizes)]
    peak, host_peak = (max((r.offset + sizes[r.storage] for r in rows), default=0) for rows in (residencies, host))
    empty = np.zeros((0, 2))
    return with_times(SwapPlan(
        graph=fingerprint(graph), machine="cpu", method="by hand", budget_bytes=2 * peak, host_budget_bytes=None,
        alignment=ALIGNMENT,
        queues=device_queues(
            order, sorted(outs, key=lambda out: out.ready), sorted(ins, key=lambda copy: (copy.start, copy.use))
        ),
        workspaces=tuple((op.id, graph.workspace_bytes(op.id)) for op in graph.ops if op.workspace >= 0),
        residencies=tuple(residencies), host_residencies=tuple(host), peak_bytes=peak, host_bytes=host_peak,
        predicted=Timeline.of_device(0.0, empty, empty, empty, np.zeros(1), np.zeros(1, np.int64)),
    ))  # fmt: skip


def repeatable(graph: Graph) -> list[tuple[int, ...]]:
    """Groups of forward ops whose results are read after the forward pass, and which could find again what they read.

    Ops that write into common storages are in one group, and so are a random op and what reads its numbers, if only the
    forward pass does.
    """
    group = list(range(len(graph.ops)))
    writers = defaultdict(list)
    for op, written in enumerate(graph.writes_again):
        for storage in written:
            writers[storage].append(op)
    captured = range(len(graph.ops))
    drawing = [op.id for op in graph.ops if op.random and _first_need(graph, [op.id], captured) is None]
    drawn = {s: op for op in drawing for s in graph.writes[op]}
    scaled = [[drawn[s], op] for op, reads in enumerate(graph.reads) for s in reads if s in drawn]
    for ops in (*writers.values(), *scaled):
        numbers = {group[op] for op in ops}
        group = [min(numbers) if number in numbers else number for number in group]
    groups = defaultdict(list)
    for op, number in enumerate(group):
        groups[number].append(op)
    return [tuple(ops) for ops in groups.values() if _may_repeat(graph, ops)]


def _may_repeat(graph: Graph, ops: list[int]) -> bool:
    needed = _first_need(graph, ops, range(len(graph.ops)))
    made = {s for op in ops for s in graph.writes_again[op]}
    if needed is None or not all(graph.ops[op].phase is Phase.FORWARD and graph.writes_again[op] for op in ops):
        return False
    if any(graph.storages[s].live_in or s in graph.output_storages for s in made):
        return False
    read = {s: op for op in ops for s in graph.reads_again[op] if s not in made}
    changed = any(read.get(s, needed) < op < needed for op, written in enumerate(graph.writes) for s in written)
    early = any(
        made & {*reads} and op not in ops and op < max(ops) for op, reads in enumerate(graph.reads)
    )  # reads what is not finished yet
    return not changed and not early


def _first_need(graph: Graph, ops: Sequence[int], order: Sequence[int]) -> int | None:
    made = {s for op in ops for s in graph.writes_again[op]}
    later = (
        op for op in map(graph.ops.__getitem__, order) if op.phase is not Phase.FORWARD and made & {*graph.reads[op.id]}
    )
    return next((op.id for op in later), None)


def _order(graph: Graph, groups: Sequence[tuple[int, ...]], order: Sequence[int]) -> list[int]:
    before = defaultdict(list)
    for ops in groups:
        before[_first_need(graph, ops, order)] += ops
    return [one for op in order for one in (*sorted(before[op]), op)]


def _touches(graph: Graph, order: list[int]) -> tuple[dict[int, list[int]], dict[int, set[int]]]:
    """By storage, the slots whose ops have it, and those in which its first value is made."""
    touches, made, makers = defaultdict(list), defaultdict(set), {}
    for slot, op in enumerate(order):
        again = op in order[:slot]
        written = [*(graph.writes_again if again else graph.writes)[op]]
        written += [graph.ops[op].workspace] if graph.ops[op].workspace >= 0 else []
        for storage in {*(graph.reads_again if again else graph.reads)[op], *written}:
            touches[storage].append(slot)
        for storage in written:
            if makers.setdefault(storage, op) == op:
                made[storage].add(slot)
    return touches, made


def _placed(spans: list[tuple[int, int, int]], sizes: list[int]) -> list[tuple[int, int, int, int]]:
    """First fit, the largest first."""
    placed: list[tuple[int, int, int, int]] = []
    for storage, start, stop in sorted(spans, key=lambda span: -sizes[span[0]]):
        offset = 0
        for other, begin, end, at in sorted(placed, key=lambda one: one[3]):
            if begin < stop and start < end and at < offset + sizes[storage] and offset < at + sizes[other]:
                offset = -(-(at + sizes[other]) // ALIGNMENT) * ALIGNMENT
        placed.append((storage, start, stop, offset))
    return placed
