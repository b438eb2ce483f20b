"""What to run again, by prices: a minimum cut weighs what it costs to keep a storage against making it again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.swap.problem.problem import Flags, Seconds
from planner.swap.recompute.forward_pass import ForwardPass
from planner.swap.recompute.min_cut import UNCUT, min_cut

#: Capacities are whole numbers: nanoseconds, and one more, so that of equal cuts the smaller is taken.
_PER_SECOND = 1e9
_MOST = 1 << 50


@dataclass(frozen=True, eq=False)
class RecomputePrices:
    """What recomputation is weighed against.

    Args:
        every: of the moments at which the forward pass holds least, what every `every`-th holds is kept; 0 for none.
        price: `[storages]`, what it costs to keep a storage from the forward pass on, in seconds per byte.
    """

    every: int
    price: Seconds


def chosen_groups(forward: ForwardPass, choice: RecomputePrices) -> Flags:
    """`[groups]`, which of them run again: the least seconds of all that is kept and all that runs again.

    Args:
        forward: the forward pass.
        choice: the prices.
    """
    network, made = forward.network, forward.made
    kept = np.zeros(len(forward.group_of), np.bool_)
    if choice.every:
        for alive in forward.cut_points[:: choice.every]:
            kept[alive] = True
    price = (_PER_SECOND * choice.price[made] * forward.bytes[made] + 1).clip(1, _MOST).astype(np.int64)
    capacity = np.zeros(len(network.head), np.int64)
    capacity[network.arc[forward.fixed]] = UNCUT
    capacity[network.arc[forward.again]] = np.where(forward.repeatable, _PER_SECOND * forward.seconds + 1, UNCUT)
    capacity[network.arc[forward.keep]] = np.where(kept[made], 0, price)
    side: Flags = min_cut(network, capacity)
    return side[2 + len(made) :]
