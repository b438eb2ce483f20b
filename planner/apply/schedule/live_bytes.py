"""The bytes on the device over a step as the hooks will hold them: of saved tensors, and of everything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from planner.apply.schedule.absences import Absence
from planner.apply.schedule.hook_calls import HookCalls
from planner.graph import Graph, arrays
from planner.memory import lifetimes


def peak_bytes(calls: HookCalls, absences: Iterable[Absence]) -> int:
    """The most bytes of saved tensors that are on the device when a hook is called.

    A storage is there from when it is saved until autograd drops it, apart from its absences, and as long as variables
    of the model's code have it.

    Args:
        calls: of the hooks in a step.
        absences: of the saved storages, those of one storage in order and without overlap.
    """
    away: dict[int, list[Absence]] = {}
    for absence in absences:
        away.setdefault(absence.storage, []).append(absence)
    changes = np.zeros(len(calls) + 1, np.int64)
    for storage, numbers in calls.members.items():
        size = calls.tensors[numbers[0]].bytes
        gaps, end = away.get(storage, ()), len(calls)
        starts = [calls.saves[numbers[0]], *(gap.fetch for gap in gaps)]
        dropped = max(calls.dropped.get(number, end) for number in numbers)
        stops = [*(gap.release for gap in gaps), dropped]
        stops[0] = max(stops[0], calls.left.get(numbers[-1], end))
        for start, stop in zip(starts, stops, strict=True):
            changes[start] += size
            changes[stop] -= size
    return int(np.cumsum(changes).max())


@dataclass(frozen=True, slots=True)
class StepPeak:
    """The peak that a whole step is expected to have in ordinary PyTorch.

    Args:
        bytes: on the device.
        reused: storages whose memory a plan makes a result in at that op, while PyTorch makes it in other memory.
        held: storages that autograd holds there beyond their last use, when a plan has freed them.
        left: storages there of which hooks know nothing, as autograd does not save them.
    """

    bytes: int
    reused: frozenset[int]
    held: frozenset[int]
    left: frozenset[int]


def step_peak(graph: Graph, calls: HookCalls, absences: Iterable[Absence]) -> StepPeak:
    """The most bytes that a whole step is expected to have on the device: all of it, and not saved tensors alone.

    The ops run in captured order, as PyTorch runs them. What its allocator adds, by rounding and in pieces that nothing
    fits into, is not known.

    Args:
        graph: of the step.
        calls: of the hooks in it.
        absences: of the saved storages.
    """
    life, ops = lifetimes(graph), len(graph.ops)
    sizes = np.array([storage.bytes for storage in graph.storages], np.int64)
    changes = np.zeros(ops + 1, np.int64)
    ends = life.end.astype(np.int64)
    held: dict[int, range] = {}
    for storage, numbers in calls.members.items():
        dropped = _ops_run(calls, max(calls.dropped.get(number, len(calls)) for number in numbers), ops)
        if storage >= 0 and ends[storage] < dropped:  # autograd holds it beyond its last use
            held[storage] = range(int(ends[storage]), dropped)
            changes[ends[storage]] += sizes[storage]
            changes[dropped] -= sizes[storage]
    away: list[tuple[int, range]] = []
    for absence in absences:
        release = max(absence.release, calls.left.get(calls.members[absence.storage][-1], len(calls)))
        if release < absence.fetch:
            gone = range(_ops_run(calls, release, ops), _ops_run(calls, absence.fetch, ops))
            away.append((absence.storage, gone))
            changes[gone.start] -= sizes[absence.storage]
            changes[gone.stop] += sizes[absence.storage]
    live = life.live_bytes + np.cumsum(changes)[:ops]
    for reusing in np.flatnonzero(life.reused_buffer >= 0):  # PyTorch makes the output before it frees the input
        live[life.birth[reusing]] += sizes[life.reused_buffer[reusing]]
    if not ops:
        return StepPeak(0, frozenset(), frozenset(), frozenset())
    peak = int(live.argmax())
    reused = life.reused_buffer[(life.reused_buffer >= 0) & (life.birth == peak)]
    gone_then = {storage for storage, gone in away if peak in gone}
    held_then = {storage for storage, span in held.items() if peak in span} - gone_then
    there = np.flatnonzero((life.birth <= peak) & (peak < ends) & (sizes > 0)).tolist()
    left = frozenset(there) - calls.members.keys()
    return StepPeak(int(live[peak]), frozenset(reused.tolist()), frozenset(held_then), left)


def largest_working_set(graph: Graph) -> int:
    """Bytes of the storages that the op that works on most works on, below which no plan has a budget.

    An output that may be made in the memory of an input is not counted beside it.

    Args:
        graph: of the step.
    """
    found = arrays(graph)
    touches, _ = found.touches()
    touched = np.add.reduceat(np.append(found.bytes[touches.items], 0), touches.start[:-1])
    reusing = np.where((np.diff(found.overwrites.start) > 0) & (found.creates >= 0), found.bytes[found.creates], 0)
    return int((np.where(np.diff(touches.start) > 0, touched, 0) - reusing).max(initial=0))


def _ops_run(calls: HookCalls, call: int, ops: int) -> int:
    """How many ops have run at a call of a hook; all of them after the last call."""
    return int(calls.position[call]) if call < len(calls) else ops
