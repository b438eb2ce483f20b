"""Collectives that run beside the ops keep all that they touch to themselves until they are done."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

from planner.graph import Graph, Op
from planner.plan.schema.lanes import COMMUNICATION
from planner.plan.schema.swap_plan import Communication, SwapPlan
from planner.plan.validator.happens_before import Entry, HappensBefore
from planner.plan.validator.op_accesses import SlotAccesses
from planner.plan.validator.residencies import DeviceResidencies

#: The namespace of the operators that communicate.
_COLLECTIVES = "stowage."


def check_communications(
    plan: SwapPlan, graph: Graph, residencies: DeviceResidencies, accesses: SlotAccesses, ordered: HappensBefore
) -> list[str]:
    """Check the entries of the communication lane; copies and addresses know which of them touch a residency."""
    if not plan.communications:
        return []
    problems = []
    for earlier, later in pairwise(plan.communications):
        if later.start <= earlier.start:
            problems.append(f"the communication lane has slot {later.start} after slot {earlier.start}")
    users = _users(plan, accesses)
    for number, beside in enumerate(plan.communications):
        op = graph.ops[plan.order[beside.start]]
        if not op.target.startswith(_COLLECTIVES):
            problems.append(f"op {op.name} in slot {beside.start} is on the communication lane and is no collective")
        problems += _stays(graph, residencies, op, beside)
        problems += _alone(plan, graph, accesses, users, ordered, number)
    return problems


def _users(plan: SwapPlan, accesses: SlotAccesses) -> dict[int, list[int]]:
    """By storage, the slots whose ops read or write it, ascending."""
    found: dict[int, list[int]] = {}
    for slot in range(len(plan.order)):
        for storage in accesses.touched(slot):
            found.setdefault(storage, []).append(slot)
    return found


def _stays(graph: Graph, residencies: DeviceResidencies, op: Op, beside: Communication) -> Iterator[str]:
    """What it touches that leaves its place too early; a buffer that its result reuses goes on as the result."""
    for storage in dict.fromkeys((*graph.reads[op.id], *graph.writes[op.id], op.workspace)):
        for residency in residencies.get(storage, []):
            if residency.start <= beside.start < residency.stop < beside.use:
                name, until = graph.storages[storage].name, f"{op.name} may use it until slot {beside.use}"
                yield f"{name} leaves its place at slot {residency.stop}, and {until}"


def _alone(
    plan: SwapPlan, graph: Graph, accesses: SlotAccesses, users: dict[int, list[int]], ordered: HappensBefore,
    number: int,
) -> Iterator[str]:  # fmt: skip
    """Ops that need what it writes, or change what it reads, and do not wait for it; its token is written by all."""
    beside = plan.communications[number]
    own = plan.order[beside.start]
    for storage in accesses.touched(beside.start):
        slots = users[storage]
        for slot in slots[bisect_right(slots, beside.start) :]:
            if slot >= beside.use:
                break
            other = plan.order[slot]
            changes = storage in accesses.writes[beside.start] or storage in accesses.writes[slot]
            if changes and not ordered.before(Entry(COMMUNICATION, number), ordered.op(slot)):
                yield (
                    f"op {graph.ops[other].name} in slot {slot} does not wait for {graph.ops[own].name}, which may use "
                    f"{graph.storages[storage].name} until slot {beside.use}"
                )
