"""Bytes that a slot of an op costs, for tensors of the whole shape; what is common is worked out without regions."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from planner.partition.coarse import MergedOp, Slot, Variant
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

    def read(self, merged: MergedOp, variant: Variant, place: int, have: Split | Replicated | None) -> int:
        """Bytes that all workers together receive of one input."""
        slot, want = merged.inputs[place], variant.states[place]
        if variant.strategy is None or not (isinstance(want, Split) and want.halo):
            return self.spread(slot, have, want)
        if have is None:
            return prod(slot.shape) * slot.itemsize * self.workers
        key = id(merged.op), id(variant.strategy), place, have
        if key not in self._fetched:
            self._fetched[key] = merged.op.input_bytes(variant.strategy, place, have, self.workers)
        return self._fetched[key]

    def spread(self, slot: Slot, have: State | None, want: State | None) -> int:
        """Bytes received to spread a tensor in another way; a state of None is a split of something it views."""
        if have is None:  # a worker may have nothing of what it wants
            times = 0 if isinstance(want, Unread) else 1 if isinstance(want, Split) else self.workers
            return times * prod(slot.shape) * slot.itemsize
        if want is None:  # nobody may be able to keep what it has
            reduced = conversion_bytes(slot.shape, have, Replicated(), self.workers, slot.itemsize)
            return reduced if isinstance(have, Partial) else prod(slot.shape) * slot.itemsize
        return _spread(slot.shape, have, want, self.workers, slot.itemsize)


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
