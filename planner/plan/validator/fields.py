"""Every field of a plan is of its type and in its range, and the plan is for this graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

from planner.graph import Graph, Kind, fingerprint
from planner.plan.schema.swap_plan import SwapPlan
from planner.plan.validator.happens_before import KNOWN_LANES, LANES


def check_fields(plan: SwapPlan, graph: Graph) -> list[str]:
    """Check each field by itself; the other checks rely on a plan without such problems."""
    problems = [*_lanes(plan)] or [*_scalars(plan), *_not_whole(plan)]
    if problems:
        return problems
    if plan.graph != fingerprint(graph):
        return [f"the plan is for another graph than {graph.name}"]
    problems = [*_workspaces(plan, graph)]
    return problems or [*_rows(plan, graph)]


def _whole(value: Any) -> bool:
    return type(value) is int


def _lanes(plan: SwapPlan) -> Iterator[str]:
    for lane in LANES:
        if lane not in plan.queues:
            yield f"the plan has no queue for {lane.words}"
    for lane in plan.queues:
        if lane not in KNOWN_LANES:
            yield f"the plan has a queue for {lane.words}, whose entries are not checked here"


def _scalars(plan: SwapPlan) -> Iterator[str]:
    for name in ("graph", "machine", "method"):
        if type(getattr(plan, name)) is not str:
            yield f"{name} is not text"
    least = {"budget_bytes": 0, "alignment": 1, "peak_bytes": 0, "host_bytes": 0}
    if plan.host_budget_bytes is not None:
        least["host_budget_bytes"] = 0
    for name, bound in least.items():
        value = getattr(plan, name)
        if not _whole(value) or value < bound:
            yield f"{name} is {value!r}, which is not a whole number from {bound} on"


def _not_whole(plan: SwapPlan) -> Iterator[str]:
    tables: tuple[tuple[str, Iterable[tuple[Any, ...]]], ...] = (
        ("order", ((op,) for op in plan.order)),
        ("workspaces", plan.workspaces),
        ("residencies", map(attrgetter("storage", "start", "stop", "offset"), plan.residencies)),
        ("host_residencies", map(attrgetter("storage", "start", "stop", "offset"), plan.host_residencies)),
        ("swap_outs", map(attrgetter("storage", "ready", "release"), plan.swap_outs)),
        ("swap_ins", map(attrgetter("storage", "start", "use"), plan.swap_ins)),
        ("communications", map(attrgetter("start", "use"), plan.communications)),
    )
    for name, rows in tables:
        for place, row in enumerate(rows):
            if not all(_whole(value) for value in row):
                yield f"entry {place} of {name} holds what is not a whole number"


def _workspaces(plan: SwapPlan, graph: Graph) -> Iterator[str]:
    provided: dict[int, int] = {}
    for op, size in plan.workspaces:
        if not 0 <= op < len(graph.ops) or size <= 0 or op in provided:
            yield f"the workspace of {size} bytes for op {op} has no such op, no size, or comes twice"
        provided[op] = size
    for node in graph.ops:
        needed, given = graph.workspace_bytes(node.id), provided.get(node.id, 0)
        if given < needed:
            yield f"op {node.name} needs a workspace of {needed} bytes and the plan provides {given}"


def _rows(plan: SwapPlan, graph: Graph) -> Iterator[str]:
    storages = sum(storage.kind is not Kind.WORKSPACE for storage in graph.storages) + len(plan.workspaces)
    end = len(plan.order)
    named: tuple[tuple[str, list[int]], ...] = (
        ("residencies", [residency.storage for residency in plan.residencies]),
        ("host_residencies", [home.storage for home in plan.host_residencies]),
        ("swap_outs", [out.storage for out in plan.swap_outs]),
        ("swap_ins", [copy.storage for copy in plan.swap_ins]),
    )
    for name, column in named:
        for place, storage in enumerate(column):
            if not 0 <= storage < storages:
                yield f"entry {place} of {name} names storage {storage}, which does not exist"
    for place, residency in enumerate(plan.residencies):
        if not 0 <= residency.start < residency.stop <= end:
            span = f"from slot {residency.start} to {residency.stop}"
            yield f"entry {place} of residencies lasts {span}, which is no span of slots"
        yield from _offset(plan, residency.offset, f"entry {place} of residencies")
    for place, home in enumerate(plan.host_residencies):
        if not -1 <= home.start < home.stop <= end:
            yield f"entry {place} of host_residencies lasts from slot {home.start} to {home.stop}, which is no span"
        yield from _offset(plan, home.offset, f"entry {place} of host_residencies")
    for place, out in enumerate(plan.swap_outs):
        if not -1 <= out.ready < out.release <= end:
            yield f"entry {place} of swap_outs is ready at slot {out.ready} and released at {out.release}: no such span"
    for place, copy in enumerate(plan.swap_ins):
        if not 0 <= copy.start <= copy.use <= end:
            yield f"entry {place} of swap_ins starts at slot {copy.start} for use at {copy.use}, which is no such span"
    for place, beside in enumerate(plan.communications):
        if not 0 <= beside.start < beside.use <= end:
            span = f"at slot {beside.start} for use at {beside.use}"
            yield f"entry {place} of communications starts {span}, which is no such span"


def _offset(plan: SwapPlan, offset: int, where: str) -> Iterator[str]:
    if offset < 0 or offset % plan.alignment:
        yield f"{where} has offset {offset}, which is no multiple of {plan.alignment} bytes"
