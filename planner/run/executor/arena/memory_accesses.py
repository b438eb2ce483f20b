"""Which bytes of the arena and the host slab each op and each copy of a plan reads and writes.

Only accesses to the same bytes need order between the streams, so these decide which waits the executor emits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from torch import Tensor

from planner.program import COLLECTIVES, BoundCall, Program, operands
from planner.run.executor.arena.arena_views import ArenaViews
from planner.run.executor.arena.binder import Binder, byte_span

#: Bytes, at no address, that every collective writes: it has its peers to itself.
_PEERS = (-2, -1)


class Access(NamedTuple):
    """Bytes `[begin, end)`, by address, that an entry of a stream reads or writes."""

    begin: int
    end: int
    writes: bool


@dataclass(frozen=True, slots=True)
class PlanAccesses:
    """Accesses of every op and every copy.

    Args:
        ops: by slot, whichever stream runs the op.
        outs, ins: by entry of the copy queue.
    """

    ops: Sequence[Sequence[Access]]
    outs: Sequence[Sequence[Access]]
    ins: Sequence[Sequence[Access]]


def plan_accesses(views: ArenaViews, binder: Binder, calls: Sequence[BoundCall]) -> PlanAccesses:
    """Find the accesses of a plan's bound calls and copies.

    An op reads the tensors that its call is given, and writes its outputs. It also claims, by writing, all bytes of the
    residencies that begin with it, its scratch memory among them, so that what the plan counts for these is free even
    where no kernel touches it. Every collective writes what stands for its peers. If a call hides what it is given, the
    op reads all of its inputs.

    Args:
        views: of the plan.
        binder: of the plan; says where an op finds a tensor.
        calls: the bound call of every slot.

    Raises:
        StowageError: a copy has no place for one of its ends.
    """
    index = views.index
    slabs = views.slabs
    program: Program = index.graph.program
    claims: list[list[Access]] = [[] for _ in calls]
    for number in np.flatnonzero(~index.from_step_start & (index.copy_in < 0)).tolist():
        residency = index.plan.residencies[number]
        if residency.start < index.slots:
            claims[residency.start].append(_access(views.device_bytes(residency), writes=True))
    ops = []
    for slot, (call, claimed) in enumerate(zip(calls, claims, strict=True)):
        op = index.graph.ops[index.plan.order[slot]]
        given = operands(call)
        if given is None:
            given = [binder.tensor(tensor, slot) for tensor in op.inputs if binder.takes(tensor, slot)]
        written = [binder.tensor(tensor, slot) for tensor in op.outputs if binder.takes(tensor, slot)]
        found = [*_within(slabs, given, writes=False), *_within(slabs, written, writes=True), *claimed]
        if program.calls[op.id].target in COLLECTIVES:
            found.append(Access(*_PEERS, writes=True))
        ops.append([*dict.fromkeys(access for access in found if access.begin < access.end)])
    outs = [_copy(views.out_ends(entry)) for entry in range(len(index.plan.swap_outs))]
    ins = [_copy(views.in_ends(entry)) for entry in range(len(index.plan.swap_ins))]
    return PlanAccesses(ops, outs, ins)


def _copy(ends: tuple[Tensor, Tensor]) -> list[Access]:
    target, source = ends
    return [_access(source, writes=False), _access(target, writes=True)]


def _access(tensor: Tensor, *, writes: bool) -> Access:
    return Access(*byte_span(tensor), writes)


def _within(slabs: Sequence[tuple[int, int]], tensors: Iterable[Tensor], *, writes: bool) -> Iterator[Access]:
    """Accesses to tensors in the slabs; all others belong to one call alone."""
    for tensor in tensors:
        begin, end = byte_span(tensor)
        if any(first <= begin < last for first, last in slabs):
            yield Access(begin, end, writes)
