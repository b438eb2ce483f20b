"""The bytes of saved tensors on the device over a step, as the hooks will hold them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from planner.apply.schedule.absences import Absence
from planner.apply.schedule.hook_calls import HookCalls


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
