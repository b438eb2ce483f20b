"""All baselines by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from planner.errors import StowageError
from planner.partition.baselines.all_row import all_row
from planner.partition.baselines.data_parallel import data_parallel
from planner.partition.baselines.restricted_search import equal_chop, without_reductions
from planner.partition.baselines.spartan import spartan
from planner.partition.coarse import CoarseGraph
from planner.partition.search import Partitioning

#: Splits a coarse graph over so many workers.
Baseline = Callable[[CoarseGraph, int], Partitioning]

BASELINES: Mapping[str, Baseline] = MappingProxyType(
    {
        "data-parallel": data_parallel,
        "all-row": all_row,
        "spartan": spartan,
        "equal-chop": equal_chop,
        "icml18": without_reductions,
    }
)


def baselines(coarse: CoarseGraph, workers: int) -> dict[str, Partitioning | None]:
    """The partition of every baseline; None if it has none.

    Args:
        coarse: the coarse graph.
        workers: how many there are.
    """
    found: dict[str, Partitioning | None] = {}
    for name, baseline in BASELINES.items():
        try:
            found[name] = baseline(coarse, workers)
        except StowageError:
            found[name] = None
    return found
