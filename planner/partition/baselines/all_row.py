"""Every tensor split by its rows."""

from __future__ import annotations

from planner.machine import prime_factors
from planner.partition.baselines.pinned import pinned
from planner.partition.coarse import CoarseGraph
from planner.partition.search import Partitioning


def all_row(coarse: CoarseGraph, workers: int) -> Partitioning:
    """Split every tensor along its first dimension that is large enough, weights and activations alike.

    Ops follow: each takes the strategy that moves the least bytes. This is what Tofu's paper (EuroSys 2019) compares
    with as AllRow-Greedy.

    Args:
        coarse: the coarse graph.
        workers: how many there are.

    Raises:
        StowageError: there are no such workers.
    """
    labels = {group: first_dimension(coarse, group, workers) for group in range(len(coarse.groups))}
    return pinned(coarse, one_level(workers), labels)


def one_level(workers: int) -> tuple[int, ...]:
    """A mesh of a single level; of none for one worker.

    Raises:
        StowageError: there are no such workers.
    """
    return (workers,) if prime_factors(workers) else ()


def first_dimension(coarse: CoarseGraph, group: int, workers: int) -> int | None:
    """The label of a group that is in the first dimension of most bytes; None if it has none large enough.

    Args:
        coarse: the coarse graph.
        group: which of its groups.
        workers: into how many parts it is cut.
    """
    found = coarse.groups[group]
    by_place: dict[tuple[int, int], int] = {}  # bytes by dimension and label
    for tensor, labels in found.members.items():
        for split, label in labels.items():
            if found.sizes[label] >= workers:
                key = split.dimension, label
                by_place[key] = by_place.get(key, 0) + coarse.sizes[tensor]
    if found.whole or not by_place:
        return None
    first = min(dimension for dimension, _ in by_place)
    sizes = {label: size for (dimension, label), size in by_place.items() if dimension == first}
    return max(sizes, key=lambda label: sizes[label])
