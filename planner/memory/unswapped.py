"""The bytes that the order of a plan would hold if the plan did nothing about them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.memory.liveness import lifetimes
from planner.plan import PlanIndex


def unswapped_bytes(index: PlanIndex) -> NDArray[np.int64]:
    """`[slots]`, bytes alive in each slot if nothing were swapped and no op ran again.

    While an op runs again, those of the slot before: the step would not have gone on.

    Args:
        index: of the plan.
    """
    runs_first = np.ones(index.slots, np.int64)
    runs_first[list(index.repeats)] = 0
    return lifetimes(index.graph, index.first_runs).live_bytes[np.cumsum(runs_first) - 1]
