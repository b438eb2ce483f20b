"""A plan explained: what holds its peak, what its step waits for, what limits it, why each storage went or stayed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from math import fsum
from typing import Any

import numpy as np

from planner.errors import StowageError
from planner.graph import Graph, fingerprint
from planner.machine.types import Machine
from planner.plan import SwapPlan
from planner.swap.explain.bottleneck import Limit, limit_of
from planner.swap.explain.decisions import Fate, fates_of
from planner.swap.explain.stalls import Wait, waits_of
from planner.swap.explain.text import text_of
from planner.swap.problem.problem import Seconds, link
from planner.swap.simulate.streams import simulate


@dataclass(frozen=True, slots=True)
class Holding:
    """A storage that is on the device, in bytes."""

    storage: int
    name: str
    kind: str
    bytes: int


@dataclass(frozen=True, slots=True)
class StorageStall:
    """How long compute waits for the copies of a storage: `seconds = in_seconds + out_seconds`."""

    storage: int
    name: str
    kind: str
    bytes: int
    seconds: float
    in_seconds: float
    out_seconds: float


@dataclass(frozen=True, slots=True)
class OpStall:
    """How long an op waits; `op` is -1 and `name` empty for the end of the step, which waits for all copies."""

    op: int
    name: str
    slot: int
    seconds: float


@dataclass(frozen=True)
class Explanation:
    """What there is to say about a plan; `print` shows it as text, `to_json()` as plain data.

    Args:
        name, machine, method: what was planned, for which machine, and which planner made it.
        budget_bytes: the limit.
        arena_bytes: what the plan takes, gaps between storages included.
        peak_bytes: the most bytes of storages on the device at once.
        peak_slot, peak_op: when that is, and the name of the op that runs then.
        holders: the storages on the device then, the largest first.
        bytes_by_kind: their bytes by kind, the largest first.
        step_seconds, compute_seconds, stall_seconds: length of the step, time of its ops, and time between them; the
            last is the sum of `waits` and, up to rounding, the difference of the other two.
        waits: every wait by slot, split among the copies that it is due to.
        stalls_by_storage, stalls_by_op: the waits put together, the longest first; each adds up to `stall_seconds`.
        limit: what limits the step, and how busy the link is.
        fates: what became of every storage and why, the largest first.
    """

    name: str
    machine: str
    method: str
    budget_bytes: int
    arena_bytes: int
    peak_bytes: int
    peak_slot: int
    peak_op: str
    holders: tuple[Holding, ...]
    bytes_by_kind: tuple[tuple[str, int], ...]
    step_seconds: float
    compute_seconds: float
    stall_seconds: float
    waits: tuple[Wait, ...]
    stalls_by_storage: tuple[StorageStall, ...]
    stalls_by_op: tuple[OpStall, ...]
    limit: Limit
    fates: tuple[Fate, ...]

    def to_json(self) -> dict[str, Any]:
        """All of it as dictionaries, lists, numbers and text."""
        return {**asdict(self), "bytes_by_kind": dict(self.bytes_by_kind)}

    def __repr__(self) -> str:
        return text_of(self)


def explain(plan: SwapPlan, graph: Graph, machine: Machine, seconds: Seconds | None = None) -> Explanation:
    """Say what holds a plan's peak, what its step waits for, what limits it, and why each storage went or stayed.

    Args:
        plan, graph: a plan and its graph.
        machine: whose link carries the copies.
        seconds: `[ops]`, how long each op runs; without it, the machine's roofline.

    Raises:
        StowageError: the plan is for another graph.
    """
    if plan.graph != fingerprint(graph):
        raise StowageError(f"this plan is not for {graph.name}; pass the graph that it was made for")
    if seconds is None:
        from planner.machine import op_seconds

        seconds = op_seconds(graph, machine)
    timeline, copies = simulate(plan, graph, machine, seconds), link(machine)
    waits = waits_of(plan, timeline)
    slot, holders = _peak(plan, graph)
    by_kind: dict[str, int] = defaultdict(int)
    for holder in holders:
        by_kind[holder.kind] += holder.bytes
    sizes = [storage.bytes for storage in graph.storages]
    return Explanation(
        name=graph.name, machine=machine.name, method=plan.method,
        budget_bytes=plan.budget_bytes, arena_bytes=plan.peak_bytes,
        peak_bytes=sum(holder.bytes for holder in holders), peak_slot=slot,
        peak_op=graph.ops[plan.order[slot]].name if plan.order else "",
        holders=holders, bytes_by_kind=tuple(sorted(by_kind.items(), key=lambda item: -item[1])),
        step_seconds=timeline.seconds,
        compute_seconds=fsum((timeline.compute[:, 1] - timeline.compute[:, 0]).tolist()),
        stall_seconds=fsum(wait.seconds for wait in waits), waits=waits,
        stalls_by_storage=_by_storage(waits, graph), stalls_by_op=_by_op(waits, plan, graph),
        limit=limit_of(plan, timeline, sizes, copies), fates=fates_of(plan, graph, timeline, copies),
    )  # fmt: skip


def _peak(plan: SwapPlan, graph: Graph) -> tuple[int, tuple[Holding, ...]]:
    """The slot in which most is on the device, and what that is."""
    change = np.zeros(len(plan.order) + 1, np.int64)
    for stay in plan.residencies:
        change[stay.start] += graph.storages[stay.storage].bytes
        change[stay.stop] -= graph.storages[stay.storage].bytes
    slot = int(np.cumsum(change)[: max(1, len(plan.order))].argmax())
    there = [graph.storages[stay.storage] for stay in plan.residencies if stay.start <= slot < stay.stop]
    there.sort(key=lambda storage: (-storage.bytes, storage.id))
    return slot, tuple(Holding(one.id, one.name, str(one.kind), one.bytes) for one in there if one.bytes)


def _by_storage(waits: tuple[Wait, ...], graph: Graph) -> tuple[StorageStall, ...]:
    shares: dict[int, dict[str, list[float]]] = defaultdict(lambda: {"in": [], "out": []})
    for wait in waits:
        shares[wait.storage][wait.direction].append(wait.seconds)
    stalls = []
    for storage, share in shares.items():
        one, inwards, outwards = graph.storages[storage], fsum(share["in"]), fsum(share["out"])
        stalls.append(StorageStall(storage, one.name, str(one.kind), one.bytes, inwards + outwards, inwards, outwards))
    return tuple(sorted(stalls, key=lambda stall: (-stall.seconds, stall.storage)))


def _by_op(waits: tuple[Wait, ...], plan: SwapPlan, graph: Graph) -> tuple[OpStall, ...]:
    shares: dict[int, list[float]] = defaultdict(list)
    for wait in waits:
        shares[wait.slot].append(wait.seconds)
    stalls = []
    for slot, share in shares.items():
        op = plan.order[slot] if slot < len(plan.order) else -1
        stalls.append(OpStall(op, graph.ops[op].name if op >= 0 else "", slot, fsum(share)))
    return tuple(sorted(stalls, key=lambda stall: (-stall.seconds, stall.slot)))
