"""Bytes and collectives that bring one tensor from one way of being spread to another, level by level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from planner.machine import Collective
from planner.partition.coarse import MergedOp, Slot, Variant
from planner.partition.strategy import Partial, Replicated, Split, State, Unread, conversion_bytes


@dataclass(frozen=True, slots=True)
class LevelTransfer:
    """One collective.

    Args:
        level: of the mesh.
        collective: which.
        bytes: what all workers together receive.
    """

    level: int
    collective: Collective
    bytes: float


#: The collectives that bring a tensor from one way of being spread to another, at most one for each level.
Transfer = tuple[LevelTransfer, ...]

_converted = lru_cache(maxsize=1 << 16)(conversion_bytes)


def conversion(
    units: Sequence[float], haves: Sequence[State | None], wants: Sequence[State | None], mesh: Sequence[int]
) -> Transfer:
    """The collectives from one way of being spread to another.

    While a level is communicated, outer levels have already gathered or still have to reduce (each of their parts moves
    the whole of what it has), and inner levels that keep copies or partial sums repeat it for each of them.

    Args:
        units: per level, the bytes received if there were no other level.
        haves, wants: per level, how the tensor is spread before and after.
        mesh: workers of each level.
    """
    if any(isinstance(want, Unread) for want in wants):
        return ()
    pairs = list(zip(mesh, haves, wants, strict=True))
    found = []
    for level, unit in enumerate(units):
        if unit <= 0:
            continue
        outer = prod(k for k, have, want in pairs[:level] if isinstance(have, Partial) or isinstance(want, Replicated))
        inner = prod(
            k for k, have, want in pairs[level + 1 :]
            if (isinstance(have, Replicated) and isinstance(want, Replicated))
            or (isinstance(have, Partial) and isinstance(want, Partial))
        )  # fmt: skip
        found.append(LevelTransfer(level, _kind(haves[level], wants[level]), unit * outer * inner))
    return tuple(found)


def _kind(have: State | None, want: State | None) -> Collective:
    if isinstance(have, Partial):
        in_full = isinstance(want, Replicated) or not have.stays_partial
        return Collective.ALL_REDUCE if in_full else Collective.REDUCE_SCATTER
    if isinstance(want, Replicated):
        return Collective.ALL_GATHER
    around = isinstance(have, Split) and isinstance(want, Split) and want.halo and have.dimension == want.dimension
    return Collective.HALO_EXCHANGE if around else Collective.ALL_TO_ALL


def fetched_bytes(
    merged: MergedOp, chosen: Sequence[Variant], mesh: Sequence[int], level: int, place: int, have: State | None
) -> float:
    """Bytes received of an input at one level as if there were no other, but that outer ones may make halos more.

    Args:
        merged: the op.
        chosen: per level, how it is split.
        mesh: workers of each level.
        level: which.
        place: of the input.
        have: how it is spread before.
    """
    slot, variant, workers = merged.inputs[place], chosen[level], mesh[level]
    want = variant.states[place]
    if variant.strategy is None or have is None or not (isinstance(want, Split) and want.halo):
        return spread_bytes(slot, have, want, workers)
    moved = merged.op.input_bytes(variant.strategy, place, have, workers)
    cut = prod(mesh[outer] for outer in range(level) if chosen[outer] is variant)
    if cut > 1:  # a smaller part has as wide a halo
        own = Split(want.dimension, want.outer, want.size, want.inner)
        moved += (cut - 1) * merged.op.input_bytes(variant.strategy, place, own, workers)
    return moved


def spread_bytes(slot: Slot, have: State | None, want: State | None, workers: int) -> float:
    """Bytes received to spread a tensor in another way.

    Args:
        slot: the tensor.
        have, want: before and after; None is a split of something that it views.
        workers: how many there are.
    """
    size = prod(slot.shape) * slot.itemsize
    if isinstance(want, Unread) or have == want or isinstance(have, Replicated):
        return 0
    if have is None:
        return size * (workers if isinstance(want, Replicated) else 1)
    if want is None and isinstance(have, Partial):
        return size * (workers - 1) * (1 if have.stays_partial else 2)
    if want is None:
        return size
    if isinstance(have, Split) and isinstance(want, Replicated):
        return size * (workers - 1)
    return _converted(slot.shape, have, want, workers, slot.itemsize)


def stage_transfer(merged: MergedOp, chosen: Sequence[Variant], mesh: Sequence[int]) -> Transfer:
    """The collectives by which workers combine the stages of an op.

    Args:
        merged: the op.
        chosen: per level, how it is split.
        mesh: workers of each level.
    """
    found = []
    for level, (variant, workers) in enumerate(zip(chosen, mesh, strict=True)):
        if variant.strategy is None or not variant.strategy.stages:
            continue
        stages = variant.strategy.stages
        itemsize = merged.op.stage_bytes(variant.strategy, workers) / sum(stage.elements for stage in stages)
        total = 0.0
        for stage in stages:
            whole = (mesh[outer] for outer in range(level) if not _divides(merged, chosen[outer], stage.name))
            total += stage.elements * itemsize * prod(whole)
        found.append(LevelTransfer(level, Collective.ALL_REDUCE, total))
    return tuple(found)


def _divides(merged: MergedOp, variant: Variant, stage: str) -> bool:
    """Whether a variant of an op divides the values of one of its stages."""
    if variant.strategy is None or variant.strategy.axis is None:
        return False
    formulas = [formula for formula in merged.op.description.stages if formula.target == stage]
    return any(variant.strategy.axis in formula.variables for formula in formulas)
