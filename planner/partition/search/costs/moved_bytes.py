"""Bytes that a slot of an op costs, for tensors of the whole shape; what is common is worked out without regions."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from planner.partition.coarse import MergedOp, Stored, Variant
from planner.partition.search.factors.min_sum import FORBIDDEN
from planner.partition.strategy import Partial, Replicated, Split, State, Unread, chunk, conversion_bytes


class SlotBytes:
    """Bytes moved to give merged ops their inputs and to store their outputs, at one level.

    Args:
        workers: how many there are.
    """

    def __init__(self, workers: int) -> None:
        """Begin with nothing known."""
        self.workers = workers
        self._fetched: dict[object, int] = {}

    def read(self, merged: MergedOp, variant: Variant, place: int, have: Stored | None) -> float:
        """Bytes that all workers together receive of one input."""
        slot, want = merged.inputs[place], variant.states[place]
        if variant.strategy is None or not (isinstance(want, Split) and want.halo) or isinstance(have, Partial):
            return read_bytes(slot.shape, slot.itemsize, have, want, self.workers)
        if have is None:
            return prod(slot.shape) * slot.itemsize * self.workers
        key = id(merged.op), id(variant.strategy), place, have
        if key not in self._fetched:
            self._fetched[key] = merged.op.input_bytes(variant.strategy, place, have, self.workers)
        return self._fetched[key]

    def halo(self, merged: MergedOp, variant: Variant, place: int) -> float:
        """The part of it that lies around the workers' own chunks; 0 if there is none."""
        want = variant.states[place]
        if variant.strategy is None or not (isinstance(want, Split) and want.halo):
            return 0
        return self.read(merged, variant, place, Split(want.dimension, want.outer, want.size, want.inner))


def read_bytes(
    shape: tuple[int, ...], itemsize: int, have: Stored | None, want: State | None, workers: int
) -> float:  # fmt: skip
    """Bytes received to read a tensor without a halo; as `spread_bytes`."""
    if isinstance(have, Partial) and not isinstance(want, Partial | Unread):
        return FORBIDDEN  # partial sums are only read by ops that add up
    return spread_bytes(shape, itemsize, have, want, workers)


def spread_bytes(
    shape: tuple[int, ...], itemsize: int, have: State | None, want: State | None, workers: int
) -> int:  # fmt: skip
    """Bytes received to spread a tensor in another way; a state of None is a split of something it views."""
    if have is None:  # a worker may have nothing of what it wants
        times = 0 if isinstance(want, Unread) else workers if isinstance(want, Replicated) else 1
        return times * prod(shape) * itemsize
    if want is None and isinstance(have, Partial):  # nobody may be able to keep what it has
        return (workers - 1) * (1 if have.stays_partial else 2) * prod(shape) * itemsize
    if want is None:
        return 0 if isinstance(have, Replicated) else prod(shape) * itemsize
    return _spread(shape, have, want, workers, itemsize)


def gathers(have: State | None, want: State | None) -> bool:
    """Whether what inner levels move of a tensor moves to, or is wanted by, each part of an outer level in full.

    Args:
        have, want: how the tensor is spread at the outer level, before and after.
    """
    return isinstance(have, Partial) or (isinstance(want, Replicated) and not isinstance(have, Partial))


def repeats(have: State | None, want: State | None) -> bool:
    """Whether what outer levels move of a tensor is moved for each part of an inner level, because it has a copy.

    Args:
        have, want: how the tensor is spread at the inner level, before and after.
    """
    both_whole = isinstance(have, Replicated) and isinstance(want, Replicated)
    return both_whole or (isinstance(have, Partial) and isinstance(want, Partial))


@lru_cache(maxsize=1 << 16)
def _spread(shape: tuple[int, ...], have: State, want: State, workers: int, itemsize: int) -> int:
    if have == want or isinstance(have, Replicated):
        return 0
    elements = prod(shape)
    if isinstance(have, Split) and isinstance(want, Replicated):
        return (workers - 1) * elements * itemsize
    if isinstance(have, Split) and isinstance(want, Split) and not want.halo and _apart(have, want):
        rest = elements // have.size // want.size
        kept = sum(_length(have, workers, worker) * _length(want, workers, worker) for worker in range(workers))
        return (elements - kept * rest) * itemsize
    return conversion_bytes(shape, have, want, workers, itemsize)


def _apart(left: Split, right: Split) -> bool:
    """Whether two splits cut different factors."""
    outside, inside = (left, right) if left.inner > right.inner else (right, left)
    return left.dimension != right.dimension or outside.inner >= inside.inner * inside.size


def _length(split: Split, workers: int, worker: int) -> int:
    start, stop = chunk(split.size, workers, worker)
    return stop - start
