"""How full the arena is at a moment of a step, from what has been done so far."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.graph import Graph
from planner.plan.swap_plan import SwapPlan


class Occupancy:
    """Bytes in the arena, by how far the three streams of a step are.

    The memory of a stay counts from the start of the op that makes it, or of its swap-in, until the op that is the last
    to need it has ended and its swap-out is done. That is what a measured timeline shows too, once the step is over.

    Args:
        graph: with the plan's workspaces.
        plan: the plan.
        sizes: calls in each segment of the walk.
    """

    def __init__(self, graph: Graph, plan: SwapPlan, sizes: Sequence[int]) -> None:
        n = len(plan.order)
        arrivals = {(copy.storage, copy.start): index for index, copy in enumerate(plan.swap_ins)}
        departures = {(copy.storage, copy.release): index for index, copy in enumerate(plan.swap_outs)}
        made, dropped = np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64)
        arriving = np.zeros(len(plan.swap_ins), np.int64)
        self._leaving = np.zeros(len(plan.swap_outs), np.int64)
        for stay in plan.residencies:
            size = graph.storages[stay.storage].bytes
            if (copy := arrivals.get((stay.storage, stay.start), -1)) >= 0:
                arriving[copy] = size
            else:
                made[0 if graph.storages[stay.storage].held else stay.start + 1] += size
            if (copy := departures.get((stay.storage, stay.stop), -1)) >= 0:
                self._leaving[copy] = size
            elif stay.stop < n:
                dropped[stay.stop] += size
        self._arrived = np.concatenate([[0], np.cumsum(arriving)])
        self._releases = np.array([copy.release for copy in plan.swap_outs], np.int64)
        made, dropped = np.cumsum(made), np.cumsum(dropped)
        # After the last call of a segment the next op waits; from the mark before its first call on, an op runs.
        slots, begun = [0], [0]
        for size in sizes:
            first = slots[-1]
            slots += range(first, first + size + 1)
            begun += [*range(first + 1, first + size + 1), first + size]
        self._slots = np.array([*slots, n], np.int64)
        self._levels = made[np.minimum([*begun, n], n)] - dropped[self._slots]

    def at(self, marks: int, outs: int, ins: int) -> tuple[int, int]:
        """The slot whose op runs or is waited for, the number of ops at the end, and the bytes in the arena.

        Args:
            marks: how many moments of the step have been stamped.
            outs, ins: swap-outs that are done, swap-ins that have begun.
        """
        slot = int(self._slots[marks])
        gone = self._leaving[:outs][self._releases[:outs] <= slot].sum()
        return slot, int(self._levels[marks] + self._arrived[ins] - gone)
