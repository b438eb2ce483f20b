"""What a search finds: per level, how every group of tensors is stored and how every op is split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from planner.errors import StowageError
from planner.machine import prime_factors
from planner.partition.coarse import CoarseGraph, Option, Stored, Variant, state_of


@dataclass(frozen=True, eq=False)
class LevelChoice:
    """What is chosen at one level.

    Args:
        workers: into how many parts each part is cut.
        labels: per group, the label that is cut; None if it stays whole, `Partial` if it is stored as partial sums.
        variants: per merged op, how it is split.
        bytes_moved: what all workers together receive at this level.
    """

    workers: int
    labels: tuple[Option, ...]
    variants: tuple[Variant, ...]
    bytes_moved: float


@dataclass(frozen=True, eq=False)
class Partitioning:
    """A partition of a step, level by level.

    Args:
        coarse: the coarse graph that is split.
        levels: the choices, the outermost level first.
        cost: what the search makes least: the bytes moved, if levels have no weights and memory has no price.
        bound: no partition of the coarse graph costs less; None if that is not known.
    """

    coarse: CoarseGraph
    levels: tuple[LevelChoice, ...]
    cost: float
    bound: float | None = None

    @property
    def mesh(self) -> tuple[int, ...]:
        """Into how many parts each level cuts."""
        return tuple(level.workers for level in self.levels)

    @property
    def workers(self) -> int:
        """How many there are."""
        return prod(self.mesh)

    @property
    def bytes_moved(self) -> float:
        """Bytes that all workers together receive in a step."""
        return sum(level.bytes_moved for level in self.levels)

    @property
    def gap(self) -> float | None:
        """By which share of its cost it may be too expensive; None if no bound is known."""
        if self.bound is None:
            return None
        return max(0.0, 1 - self.bound / self.cost) if self.cost > 0 else 0.0

    def tensor_states(self, tensor: int) -> tuple[Stored | None, ...]:
        """Per level, how a tensor is spread; None for a view of something whose split no split of the view is."""
        coarse = self.coarse
        labels, known, group = coarse.labels[tensor], coarse.known[tensor], coarse.group_of[tensor]
        return tuple(state_of(labels, known, level.labels[group]) for level in self.levels)

    def op_variants(self, op: int) -> tuple[Variant, ...]:
        """Per level, how an op is split."""
        return tuple(level.variants[self._merged[op]] for level in self.levels)

    def resident_bytes(self) -> float:
        """Bytes of all tensors of the step that one worker stores, as if all were alive at once."""
        found = 0.0
        for tensor in self.coarse.graph.tensors:
            if tensor.base < 0:
                own = {label for label, _ in self.coarse.labels[tensor.id]}
                group = self.coarse.group_of[tensor.id]
                parts = prod(level.workers for level in self.levels if level.labels[group] in own)
                found += self.coarse.sizes[tensor.id] / parts
        return found

    @cached_property
    def _merged(self) -> dict[int, int]:
        return {op: number for number, merged in enumerate(self.coarse.merged) for op in merged.ops}


def mesh_of(workers: int | Sequence[int]) -> tuple[int, ...]:
    """Into how many parts each level cuts, the outermost first: the prime factors of a number of workers.

    Raises:
        StowageError: there are no workers, or a level cuts into fewer than 2 parts.
    """
    if isinstance(workers, int) or not isinstance(workers, Sequence) or isinstance(workers, str):
        return prime_factors(workers)
    mesh = tuple(workers)
    if any(not isinstance(factor, int) or factor < 2 for factor in mesh):
        raise StowageError(f"every level of a mesh must have 2 workers or more, got {list(mesh)}")
    return mesh
