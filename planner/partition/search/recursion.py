"""The recursion: one factor of the number of workers after another, each on what the last has left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from planner.errors import StowageError
from planner.partition.coarse import CoarseGraph, Variant, state_of
from planner.partition.search.eliminate import eliminate
from planner.partition.search.level import LevelCosts, OpShares, cut, options
from planner.partition.strategy import Replicated, Split


@dataclass(frozen=True, eq=False)
class LevelChoice:
    """What is chosen at one level.

    Args:
        workers: into how many parts each part is cut.
        labels: per group, the label that is cut; None if it stays whole.
        variants: per merged op, how it is split.
        bytes_moved: what all workers together receive at this level.
    """

    workers: int
    labels: tuple[int | None, ...]
    variants: tuple[Variant, ...]
    bytes_moved: float


@dataclass(frozen=True, eq=False)
class Partitioning:
    """A partition of a step, level by level.

    Args:
        coarse: the coarse graph that is split.
        levels: the choices.
    """

    coarse: CoarseGraph
    levels: tuple[LevelChoice, ...]

    @property
    def workers(self) -> int:
        """How many there are."""
        return prod(level.workers for level in self.levels)

    @property
    def bytes_moved(self) -> float:
        """Bytes that all workers together receive in a step."""
        return sum(level.bytes_moved for level in self.levels)

    def tensor_states(self, tensor: int) -> tuple[Split | Replicated | None, ...]:
        """Per level, how a tensor is spread; None for a view of something whose split no split of the view is."""
        coarse = self.coarse
        labels, known, group = coarse.labels[tensor], coarse.known[tensor], coarse.group_of[tensor]
        return tuple(state_of(labels, known, level.labels[group]) for level in self.levels)

    def op_variants(self, op: int) -> tuple[Variant, ...]:
        """Per level, how an op is split."""
        return tuple(level.variants[self._merged[op]] for level in self.levels)

    @cached_property
    def _merged(self) -> dict[int, int]:
        return {op: number for number, merged in enumerate(self.coarse.merged) for op in merged.ops}


def prime_factors(workers: int) -> tuple[int, ...]:
    """The prime factors of a number of workers, the largest first.

    Raises:
        StowageError: there are none.
    """
    if not isinstance(workers, int) or workers < 1:
        raise StowageError(f"workers must be a whole number, at least 1, got {workers!r}")
    found, factor = [], 2
    while workers > 1:
        if factor * factor > workers:
            factor = workers  # what is left is prime
        while workers % factor == 0:
            found.append(factor)
            workers //= factor
        factor += 1
    return tuple(reversed(found))


def recurse(coarse: CoarseGraph, workers: int, factors: Sequence[int] | None = None) -> Partitioning:
    """Split a step over workers, with the fewest bytes at each level given the levels before.

    Args:
        coarse: the coarse graph.
        workers: how many there are, at least 1; with one there is no level.
        factors: into how many parts each level cuts; the prime factors if not given.

    Raises:
        StowageError: the factors do not make up the number of workers, or its groups depend on each other too much.
    """
    primes = prime_factors(workers)
    factors = primes if factors is None else tuple(factors)
    if any(factor < 2 for factor in factors) or prod(factors) != workers:
        raise StowageError(f"factors {list(factors)} must be 2 or more and multiply to {workers} workers")
    shares = [OpShares([1.0] * (len(merged.inputs) + len(merged.outputs))) for merged in coarse.merged]
    cuts: dict[tuple[int, int], int] = {}
    levels: list[LevelChoice] = []
    parts = 1
    for factor in factors:
        chosen = [options(coarse, group, cuts, factor) for group in range(len(coarse.groups))]
        costs = LevelCosts(chosen, factor)
        found = [costs.table(merged, left) for merged, left in zip(coarse.merged, shares, strict=True)]
        least, values = eliminate([len(labels) for labels in chosen], [table for table, _, _ in found])
        labels = tuple(labels[value] for labels, value in zip(chosen, values, strict=True))
        picked = []
        for left, (table, best, candidates) in zip(shares, found, strict=True):
            variant = candidates[int(best[tuple(values[group] for group in table.variables)])]
            picked.append(variant)
            cut(left, variant, factor)
        for group, label in enumerate(labels):
            if label is not None:
                cuts[group, label] = cuts.get((group, label), 1) * factor
        levels.append(LevelChoice(factor, labels, tuple(picked), least * parts))
        parts *= factor
    return Partitioning(coarse, tuple(levels))
