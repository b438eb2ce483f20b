"""The recursion: one level after another, each on what the last has left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from planner.finalizers import without_garbage_collection
from planner.partition.coarse import CoarseGraph, GroupsAndOps, MergedOp, Variant
from planner.partition.search.choices.domains import Domains
from planner.partition.search.choices.partitioning import Partitioning, mesh_of
from planner.partition.search.choices.rules import Pin, SearchRules
from planner.partition.search.costs.slot_costs import SlotCosts
from planner.partition.search.folding import fold
from planner.partition.search.problem import Choice, LevelsProblem, costing, partitioning


def recurse(
    coarse: CoarseGraph,
    workers: int | Sequence[int],
    *,
    weights: Sequence[float] = (),
    pins: Mapping[int, Sequence[Pin]] | None = None,
    allowed: Callable[[int, int], bool] | None = None,
    allowed_variant: Callable[[MergedOp, Variant], bool] | None = None,
    replicate: float | None = None,
) -> Partitioning:
    """Split a step over workers, with the least cost at each level given the levels before.

    Args:
        coarse, workers, weights, pins, allowed, allowed_variant, replicate: as in `optimize`.

    Raises:
        StowageError: there are no such workers, or a pin cannot be met.
    """
    rules = SearchRules(mesh_of(workers), tuple(weights), pins or {}, allowed, allowed_variant, replicate)
    rules.check(coarse)
    with without_garbage_collection():
        folded = fold(coarse, rules)
        parts, own = folded.parts, folded.rules
        domains = Domains(parts, own)
        found = costing(parts, own, domains, by_recursion(parts, own, domains, SlotCosts(own)))
        return partitioning(coarse, rules, folded.unfolded(found))


def by_recursion(coarse: GroupsAndOps, rules: SearchRules, domains: Domains, costs: SlotCosts) -> Choice:
    """Choose level by level.

    Args:
        coarse: the groups and ops.
        rules: what may be chosen and what is made least.
        domains: the options and variants.
        costs: the costs of slots.

    Raises:
        StowageError: a pin cannot be met.
    """
    found = Choice(((),) * len(coarse.groups), ((),) * len(coarse.merged), 0.0)
    for _ in rules.mesh:
        stored = [domains.group(group, (*row, None)) for group, row in enumerate(found.stored)]
        ways = [domains.op(merged, (*row, None)) for merged, row in zip(coarse.merged, found.ways, strict=True)]
        found = LevelsProblem(coarse, rules, domains, costs, stored, ways).solve_or_approach()
    return found
