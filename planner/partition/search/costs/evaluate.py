"""The bytes that a partition moves, from how its tensors are stored and its ops are split."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod

from planner.partition.coarse import GroupsAndOps, MergedOp, Option, Variant
from planner.partition.search.choices.partitioning import Partitioning
from planner.partition.search.costs.moved_bytes import SlotBytes, gathers, repeats, spread_bytes
from planner.partition.strategy import Split, State, Unread


def evaluate(found: Partitioning) -> tuple[float, ...]:
    """Bytes that all workers together receive in a step, per level.

    Args:
        found: a partition.
    """
    coarse = found.coarse
    stored = [tuple(level.labels[group] for level in found.levels) for group in range(len(coarse.groups))]
    chosen = [tuple(level.variants[number] for level in found.levels) for number in range(len(coarse.merged))]
    return bytes_by_level(coarse, found.mesh, stored, chosen)


def bytes_by_level(
    coarse: GroupsAndOps, mesh: Sequence[int], stored: Sequence[Sequence[Option]], chosen: Sequence[Sequence[Variant]]
) -> tuple[float, ...]:
    """Bytes that all workers together receive in a step, per level.

    Args:
        coarse: the groups and ops.
        mesh: into how many parts each level cuts.
        stored: per group, how it is stored level by level.
        chosen: per merged op, how it is split level by level.
    """
    moved = [SlotBytes(workers) for workers in mesh]
    total = [0.0] * len(mesh)

    def add(levels: Sequence[float], count: int) -> None:
        for level, more in enumerate(levels):
            total[level] += more * count

    fetched: dict[tuple[int, int], tuple[Hashable, Sequence[float]]] = {}
    for number, (merged, variants) in enumerate(zip(coarse.merged, chosen, strict=True)):
        parts = [_parts(mesh, variants, level) for level in range(len(mesh))]
        add(_stages(merged, variants, mesh), len(merged.ops))
        for place, slot in enumerate((*merged.inputs, *merged.outputs)):
            wants = tuple(variant.states[place] for variant in variants)
            haves = tuple(slot.state(option) for option in stored[slot.group])
            if place >= len(merged.inputs):
                made = [spread_bytes(slot.shape, slot.itemsize, *each) for each in zip(wants, haves, mesh, strict=True)]
                add(_moved(made, wants, haves, mesh), len(merged.ops))
            elif not any(isinstance(want, Unread) for want in wants):
                units: list[float] = []
                for level, (here, variant, have) in enumerate(zip(moved, variants, haves, strict=True)):
                    more = (parts[level] - 1) * here.halo(merged, variant, place) if isinstance(have, Split) else 0.0
                    units.append(here.read(merged, variant, place, have) + more)
                key = tuple(want_key(merged, variant, place) for variant in variants)
                fetched[number, place] = key, _moved(units, haves, wants, mesh)
    for fetch in coarse.fetches:  # the same contents in the same state are brought once
        for levels in dict(fetched[reader] for reader in reversed(fetch.readers) if reader in fetched).values():
            add(levels, fetch.count)
    return tuple(total)


def want_key(merged: MergedOp, variant: Variant, place: int) -> Hashable:
    """What tells apart the states in which ops want one input: where it can be, as a split of what it views."""
    want, slot = variant.states[place], merged.inputs[place]
    if not isinstance(want, Split):
        return want
    if want.halo:
        return id(merged.op), id(variant.strategy), place
    label = slot.label(want)
    return (slot.shape, want) if label is None else label


def _moved(
    units: Sequence[float], haves: Sequence[State | None], wants: Sequence[State | None], mesh: Sequence[int]
) -> tuple[float, ...]:
    found = []
    pairs = list(zip(mesh, haves, wants, strict=True))
    for level, unit in enumerate(units):
        outer = prod(workers for workers, have, want in pairs[:level] if gathers(have, want))
        inner = prod(workers for workers, have, want in pairs[level + 1 :] if repeats(have, want))
        found.append(unit * outer * inner)
    return tuple(found)


def _parts(mesh: Sequence[int], chosen: Sequence[Variant], level: int) -> int:
    """Into how many parts outer levels have cut what a level divides; a smaller part has as wide a halo."""
    return prod(mesh[outer] for outer in range(level) if chosen[outer] is chosen[level])


def _stages(merged: MergedOp, chosen: Sequence[Variant], mesh: Sequence[int]) -> list[float]:
    found = []
    for level, (variant, workers) in enumerate(zip(chosen, mesh, strict=True)):
        total = 0.0
        for stage, elements in stage_bytes(merged, variant, workers):
            whole = (mesh[outer] for outer in range(level) if not divides(merged, chosen[outer], stage))
            total += elements * prod(whole)
        found.append(total)
    return found


def stage_bytes(merged: MergedOp, variant: Variant, workers: int) -> list[tuple[str, float]]:
    """Per stage that workers combine, its name and the bytes that they receive for it."""
    if variant.strategy is None or not variant.strategy.stages:
        return []
    stages = variant.strategy.stages
    share = merged.op.stage_bytes(variant.strategy, workers) / sum(stage.elements for stage in stages)
    return [(stage.name, stage.elements * share) for stage in stages]


def divides(merged: MergedOp, variant: Variant, stage: str) -> bool:
    """Whether a variant of an op divides the values of one of its stages."""
    if variant.strategy is None or variant.strategy.axis is None:
        return False
    formulas = [formula for formula in merged.op.description.stages if formula.target == stage]
    return any(variant.strategy.axis in formula.variables for formula in formulas)
