"""One level of the recursion: the cost of every merged op as a table over the splits of its groups."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planner.partition.coarse import CoarseGraph, MergedOp, Variant
from planner.partition.search.eliminate import CostTable
from planner.partition.search.moved_bytes import SlotBytes
from planner.partition.strategy import Replicated, Split

#: Labels serve a group that have at least this share of the bytes that its commonest label has.
_MOST_OF_A_GROUP = 0.9
#: How a tensor is spread by each option of its group.
States = tuple[Split | Replicated | None, ...]


@dataclass(slots=True)
class OpShares:
    """What earlier levels have left of a merged op for each part of the workers.

    Args:
        slots: per input and output, the share of its elements.
        stages: the share of the values that the op's stages combine.
        cuts: by axis and atom, into how many parts it has been cut.
    """

    slots: list[float]
    stages: float = 1.0
    cuts: dict[tuple[object, int], int] = field(default_factory=dict)


def options(coarse: CoarseGraph, group: int, cuts: dict[tuple[int, int], int], workers: int) -> list[int | None]:
    """The labels by which a group may be split over some workers; None, for not at all, if there is none.

    Args:
        coarse: the coarse graph.
        group: which of its groups.
        cuts: by group and label, into how many parts earlier levels have cut it.
        workers: how many workers there are at this level.
    """
    found = coarse.groups[group]
    sizes = coarse.label_bytes[group]
    alive = [label for label, size in found.sizes.items() if size // cuts.get((group, label), 1) >= workers]
    if found.whole or not alive:
        return [None]
    alive.sort(key=lambda label: (-sizes[label], label))
    total = sizes[alive[0]]
    most: list[int | None] = [label for label in alive if sizes[label] >= _MOST_OF_A_GROUP * total]
    return most if len(most) > 1 else list(alive[:2])


def usable(merged: MergedOp, shares: OpShares, workers: int) -> list[Variant]:
    """The variants of merged ops that serve so many workers; that all compute everything only if no other does."""
    found = [
        variant
        for variant in merged.variants
        if variant.strategy is not None and variant.size // shares.cuts.get(axis_of(variant), 1) >= workers
    ]
    return found or [merged.variants[-1]]


def axis_of(variant: Variant) -> tuple[object, int]:
    """What a variant divides."""
    return (variant.strategy.axis if variant.strategy else None), variant.atom


class LevelCosts:
    """The bytes of merged ops at one level; ops that look alike from inside are worked out once.

    Args:
        chosen: the options of every group.
        workers: how many workers there are at this level.
    """

    def __init__(self, chosen: list[list[int | None]], workers: int) -> None:
        """Begin with nothing known."""
        self._chosen = chosen
        self._moved = SlotBytes(workers)
        self._known: dict[object, tuple[NDArray[np.float64], NDArray[np.intp], list[Variant]]] = {}

    def table(self, merged: MergedOp, shares: OpShares) -> tuple[CostTable, NDArray[np.intp], list[Variant]]:
        """The bytes of merged ops by the splits of the groups around them.

        Args:
            merged: the ops.
            shares: what earlier levels have left of them.

        Returns:
            The least bytes, the number of the variant that moves them, and the variants.
        """
        slots = (*merged.inputs, *merged.outputs)
        variables = tuple(sorted({slot.group for slot in slots if len(self._chosen[slot.group]) > 1}))
        states = tuple(tuple(slot.state(label) for label in self._chosen[slot.group]) for slot in slots)
        places = tuple(variables.index(slot.group) if slot.group in variables else -1 for slot in slots)
        key = (
            id(merged.op), id(merged.variants), len(merged.ops), states, places, tuple(slot.count for slot in slots),
            tuple(shares.slots), shares.stages, frozenset(shares.cuts.items()),
        )  # fmt: skip
        if key not in self._known:
            shape = [len(self._chosen[group]) for group in variables]
            candidates = usable(merged, shares, self._moved.workers)
            costs = np.stack([self._costs(merged, variant, shares, shape, states, places) for variant in candidates])
            self._known[key] = costs.min(0), costs.argmin(0), candidates
        least, best, candidates = self._known[key]
        return CostTable(variables, least), best, candidates

    def _costs(
        self, merged: MergedOp, variant: Variant, shares: OpShares, shape: list[int], states: tuple[States, ...],
        places: tuple[int, ...],
    ) -> NDArray[np.float64]:  # fmt: skip
        stages = merged.op.stage_bytes(variant.strategy, self._moved.workers) if variant.strategy else 0
        costs = np.full(shape, stages * shares.stages * len(merged.ops))
        for slot, (haves, place) in enumerate(zip(states, places, strict=True)):
            moved = _slot_costs(merged, variant, slot, shares, haves, self._moved)
            if place < 0:
                costs += moved[0]
            else:
                costs += np.reshape(moved, [-1 if number == place else 1 for number in range(len(shape))])
        return costs


def _slot_costs(
    merged: MergedOp, variant: Variant, place: int, shares: OpShares, haves: States, moved: SlotBytes
) -> list[float]:
    want, weight = variant.states[place], shares.slots[place]
    if place >= len(merged.inputs):
        output = merged.outputs[place - len(merged.inputs)]
        return [moved.spread(output, want, have) * weight * output.count for have in haves]
    slot = merged.inputs[place]
    costs = [moved.read(merged, variant, place, have) * weight * slot.count for have in haves]
    cut = shares.cuts.get(axis_of(variant), 1)
    if isinstance(want, Split) and want.halo and cut > 1:  # a smaller part has as wide a halo
        halo = moved.read(merged, variant, place, Split(want.dimension, want.outer, want.size, want.inner))
        costs = [cost + (cut - 1) * halo * weight * slot.count for cost in costs]
    return costs


def cut(shares: OpShares, variant: Variant, workers: int) -> None:
    """Record that a level has split merged ops in a way."""
    if variant.strategy is None:
        return
    for place, state in enumerate(variant.states):
        if isinstance(state, Split):
            shares.slots[place] /= workers
    if not variant.strategy.stages:
        shares.stages /= workers
    axis = axis_of(variant)
    shares.cuts[axis] = shares.cuts.get(axis, 1) * workers
