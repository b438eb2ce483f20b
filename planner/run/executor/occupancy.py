"""Bytes in use in the arena at a moment of a step, from the progress of its streams."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.plan import PlanIndex


class Occupancy:
    """Bytes in use in the arena, by the progress of the three streams of a step.

    The memory of a residency counts from the start of the op that makes it, or of its swap-in, until the last op that
    needs it has ended and its swap-out is done. A measured timeline shows the same once the step is over.

    Args:
        index: of the plan.
        sizes: number of calls in each segment of the step program.
        marks_ops: whether there is a time stamp after every call, or only after the last of each segment.
    """

    def __init__(self, index: PlanIndex, sizes: Sequence[int], *, marks_ops: bool) -> None:
        plan, n = index.plan, index.slots
        made, dropped = np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64)
        copied_in, copied_out = index.copy_in >= 0, index.copy_out >= 0
        at = np.where(index.from_step_start, 0, index.start + 1)
        np.add.at(made, at[~copied_in], index.bytes[~copied_in])
        freed = index.ends & ~copied_out
        np.add.at(dropped, index.stop[freed], index.bytes[freed])
        arriving = np.zeros(len(plan.swap_ins), np.int64)
        arriving[index.copy_in[copied_in]] = index.bytes[copied_in]
        self._leaving = np.zeros(len(plan.swap_outs), np.int64)
        self._leaving[index.copy_out[copied_out]] = index.bytes[copied_out]
        self._arrived = np.concatenate([[0], np.cumsum(arriving)])
        self._releases = np.array([copy.release for copy in plan.swap_outs], np.int64)
        made, dropped = np.cumsum(made), np.cumsum(dropped)
        # after the last call of a segment the next op waits; from the mark before a segment's first call, an op runs
        slots, begun = [0], [0]
        for size in sizes:
            first = slots[-1]
            running = range(first, first + size) if marks_ops else range(first, first + min(size, 1))
            slots += [*running, first + size]
            begun += [*(slot + 1 for slot in running), first + size]
        self._slots = np.array([*slots, n], np.int64)
        self._levels = made[np.minimum([*begun, n], n)] - dropped[self._slots]

    def at(self, marks: int, outs: int, ins: int) -> tuple[int, int]:
        """The slot whose op runs or waits (the number of ops at the end), and the bytes in use in the arena.

        Args:
            marks: number of time stamps of the step so far.
            outs, ins: number of swap-outs that are done and of swap-ins that have begun.
        """
        slot = int(self._slots[marks])
        gone = self._leaving[:outs][self._releases[:outs] <= slot].sum()
        return slot, int(self._levels[marks] + self._arrived[ins] - gone)
