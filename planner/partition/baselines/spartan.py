"""The largest tensors first."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import inf

from planner.partition.baselines.all_row import one_level
from planner.partition.baselines.pinned import pinned
from planner.partition.coarse import CoarseGraph, MergedOp, Variant
from planner.partition.search import Partitioning
from planner.partition.step_time import fetched_bytes, spread_bytes
from planner.partition.strategy import Partial


def spartan(coarse: CoarseGraph, workers: int) -> Partitioning:
    """Split the largest group of tensors first, then the next, each along the one dimension that looks cheapest.

    Looked at are the ops around a group, and of what else they read and make only what has been split before. This is
    the greedy method of Spartan (Huang et al., Spartan: A Distributed Array Framework with Smart Tiling, USENIX ATC
    2015) as Tofu's paper (EuroSys 2019) compares with it.

    Args:
        coarse: the coarse graph.
        workers: how many there are.

    Raises:
        StowageError: there are no such workers.
    """
    mesh = one_level(workers)
    greedy = _Greedy(coarse, workers)
    by_size = sorted(range(len(coarse.groups)), key=lambda group: (-greedy.bytes_of(group), group))
    chosen: dict[int, int | None] = {}
    for group in by_size:
        chosen[group] = greedy.cheapest(group, chosen)
    return pinned(coarse, mesh, chosen)


class _Greedy:
    """Looks at one group after another."""

    def __init__(self, coarse: CoarseGraph, workers: int) -> None:
        self._coarse, self._workers = coarse, workers
        self._around: list[list[MergedOp]] = [[] for _ in coarse.groups]
        for merged in coarse.merged:
            for group in {slot.group for slot in (*merged.inputs, *merged.outputs)}:
                self._around[group].append(merged)

        @cache
        def cost(merged: MergedOp, variant: Variant, place: int, label: int | None) -> float:
            slots = (*merged.inputs, *merged.outputs)
            have = slots[place].state(label)
            times = len(merged.ops)
            if place < len(merged.inputs):
                times = len({coarse.graph.ops[op].inputs[place] for op in merged.ops})
                return times * fetched_bytes(merged, (variant,), (workers,), 0, place, have)
            return times * spread_bytes(slots[place], variant.states[place], have, workers)

        self._cost = cost

    def bytes_of(self, group: int) -> int:
        """Bytes of all tensors of a group."""
        return sum(self._coarse.sizes[tensor] for tensor in self._coarse.groups[group].members)

    def cheapest(self, group: int, chosen: Mapping[int, int | None]) -> int | None:
        """The label with the fewest bytes; None if the group cannot be split.

        Args:
            group: which.
            chosen: what groups are split by that come before.
        """
        found = self._coarse.groups[group]
        labels = [label for label, size in found.sizes.items() if size >= self._workers]
        if found.whole or not labels:
            return None
        return min(labels, key=lambda label: (self._bytes(group, {**chosen, group: label}), label))

    def _bytes(self, group: int, chosen: Mapping[int, int | None]) -> float:
        return sum(self._least(merged, chosen) for merged in self._around[group])

    def _least(self, merged: MergedOp, chosen: Mapping[int, int | None]) -> float:
        slots = (*merged.inputs, *merged.outputs)
        known = [(place, chosen[slot.group]) for place, slot in enumerate(slots) if slot.group in chosen]
        least = inf
        for variant in merged.variants:
            if variant.size < self._workers or (variant.strategy is None and least < inf):
                continue
            if any(isinstance(state, Partial) for state in variant.states[: len(merged.inputs)]):
                continue
            least = min(least, sum(self._cost(merged, variant, place, label) for place, label in known))
        return least
