"""Baselines that search like the recursion, among fewer choices."""

from __future__ import annotations

from planner.partition.baselines.all_row import one_level
from planner.partition.coarse import CoarseGraph, MergedOp, Variant
from planner.partition.search import Partitioning, recurse
from planner.partition.strategy import Partial


def equal_chop(coarse: CoarseGraph, workers: int) -> Partitioning:
    """Split every tensor along one dimension only, the best one: a single level of all workers.

    This is what Tofu's paper (EuroSys 2019) compares with as EqualChop.

    Args:
        coarse: the coarse graph.
        workers: how many there are.

    Raises:
        StowageError: there are no such workers, or groups of tensors depend on each other too much.
    """
    return recurse(coarse, one_level(workers))


def without_reductions(coarse: CoarseGraph, workers: int) -> Partitioning:
    """Split level by level, but never along what an op sums over.

    Each op's output is divided and no partial results are reduced, as in the dynamic programming of Jia et al.
    (Exploring Hidden Dimensions in Parallelizing Convolutional Neural Networks, ICML 2018), which Tofu's paper compares
    with as ICML18. Statistics that an op computes on its way, such as those of batch normalization, may be combined.

    Args:
        coarse: the coarse graph.
        workers: how many there are.

    Raises:
        StowageError: there are no such workers, or groups of tensors depend on each other too much.
    """
    return recurse(coarse, workers, allowed_variant=_reduces_nothing)


def _reduces_nothing(merged: MergedOp, variant: Variant) -> bool:
    return not any(isinstance(state, Partial) for state in variant.states[len(merged.inputs) :])
