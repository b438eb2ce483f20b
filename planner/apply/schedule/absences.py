"""When a saved storage leaves the device and is back, in calls of hooks.

PyTorch runs the ops in captured order, whatever the plan's order is. So the slots of a plan are translated by the ops
in them, and kept between the uses of a storage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from planner.apply.schedule.hook_calls import HookCalls
from planner.graph import Graph
from planner.plan import PlanIndex


@dataclass(frozen=True, slots=True)
class Absence:
    """A saved storage is away from the device.

    Args:
        storage: the storage.
        release: the call of a hook from which on its memory is free.
        fetch: the call at which it is copied back.
        turn: the place of that copy in the plan's queue.
    """

    storage: int
    release: int
    fetch: int
    turn: int


@dataclass(frozen=True)
class SavedAbsences:
    """What a plan swaps or recomputes of that which autograd saves.

    Args:
        swapped: the absences that hooks express.
        unreachable: saved storages that the plan swaps where hooks cannot.
        recomputed: saved storages that the plan drops and makes again; under hooks they stay.
    """

    swapped: tuple[Absence, ...]
    unreachable: frozenset[int]
    recomputed: frozenset[int]


def absences(graph: Graph, index: PlanIndex, calls: HookCalls) -> SavedAbsences:
    """Translate the absences of a plan.

    Args:
        graph: of the step.
        index: of the plan.
        calls: of the hooks in the step.
    """
    swapped: list[Absence] = []
    unreachable, recomputed = set[int](), set[int]()
    for storage, ops in _touching(graph, (one for one in calls.members if one >= 0)).items():
        for before, after in pairwise(_spans(index, storage, ops)):
            if after.copy_in < 0:
                recomputed.add(storage)
                continue
            absence = _absence(index, calls, storage, before, after)
            if absence is None:
                unreachable.add(storage)
            else:
                swapped.append(absence)
    return SavedAbsences(tuple(swapped), frozenset(unreachable), frozenset(recomputed))


class _UsedResidency(NamedTuple):
    """A residency, or several that overlap in captured order, by the first and the last op that uses it."""

    first: int
    last: int
    start: int
    stop: int
    copy_in: int


def _absence(
    index: PlanIndex, calls: HookCalls, storage: int, before: _UsedResidency, after: _UsedResidency
) -> Absence | None:
    """The absence between two spans; None if a hook cannot express it.

    While ops of the forward pass need a storage PyTorch holds it, and a hook is not called before it is saved.
    """
    numbers = calls.members[storage]
    release = calls.first_at(_between(_op_at(index, before.stop), before.last + 1, after.first))
    if not calls.offloadable(storage) or calls.saves[numbers[-1]] >= release:
        return None
    uses = [call for number in numbers for call in calls.uses[number] if call >= release]
    fetch = calls.first_at(_between(_op_at(index, after.start), before.last + 1, after.first))
    fetch = min([fetch, len(calls) - 1, *uses])
    return Absence(storage, release, fetch, after.copy_in) if release < fetch else None


def _touching(graph: Graph, storages: Iterable[int]) -> Mapping[int, list[int]]:
    """By storage, the ops that read or write it, in captured order."""
    found: dict[int, list[int]] = {storage: [] for storage in storages}
    for op, (reads, writes) in enumerate(zip(graph.reads, graph.writes, strict=True)):
        for storage in dict.fromkeys((*reads, *writes)):
            if storage in found:
                found[storage].append(op)
    return found


def _spans(index: PlanIndex, storage: int, ops: Sequence[int]) -> list[_UsedResidency]:
    """The residencies that ops use in their first run, ascending and disjoint in captured order."""
    spans: dict[int, _UsedResidency] = {}
    for op in ops:
        slot = index.slots_of(op)[0]
        # a residency stops at the op that overwrites its storage
        number = next((n for n in reversed(index.numbers(storage)) if index.start[n] <= slot), None)
        if number is not None:
            first = spans[number].first if number in spans else op
            start, stop, copy = (int(of[number]) for of in (index.start, index.stop, index.copy_in))
            spans[number] = _UsedResidency(first, op, start, stop, copy)
    merged: list[_UsedResidency] = []
    for span in sorted(spans.values()):
        if merged and span.first <= merged[-1].last:
            last = merged.pop()
            until = max(last, span, key=lambda one: one.last)
            merged.append(last._replace(last=until.last, stop=until.stop))
        else:
            merged.append(span)
    return merged


def _op_at(index: PlanIndex, slot: int) -> int:
    order = index.plan.order
    return order[slot] if slot < len(order) else len(index.graph.ops)


def _between(op: int, low: int, high: int) -> int:
    return max(low, min(op, high))
