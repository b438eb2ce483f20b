"""The calls of one worker while they are put together, and the redistributions among them."""

from __future__ import annotations

from math import prod
from typing import Any

import torch

from planner.errors import StowageError
from planner.graph import Phase
from planner.partition.strategy import chunk
from planner.partition.workers.collectives import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER
from planner.partition.workers.cuts import Cut, Spread, Whole, counts
from planner.program import Event, Layout

_ATEN = torch.ops.aten
GROUP = "0"


class WorkerEvents:
    """The calls of one worker.

    Args:
        workers: how many there are.
        worker: which of them.
    """

    def __init__(self, workers: int, worker: int) -> None:
        self.workers, self.worker = workers, worker
        self.events: list[Event] = []
        self.storage_bytes: list[int] = []
        self.phase, self.module, self.source = Phase.FORWARD, "", ""
        self.token = self.new((0,), torch.uint8)

    def storage(self, size: int) -> int:
        """A new storage of so many bytes."""
        self.storage_bytes.append(size)
        return len(self.storage_bytes) - 1

    def new(self, shape: tuple[int, ...], dtype: torch.dtype) -> Layout:
        """A contiguous tensor in a new storage."""
        return dense(self.storage(prod(shape) * dtype.itemsize), shape, dtype)

    def add(self, target: Any, args: tuple[Any, ...], *results: Layout | None, **kwargs: Any) -> None:
        """Add a call."""
        self.events.append(Event(target, args, kwargs, results, self.phase, self.module, self.source))

    def clone(self, source: Layout) -> Layout:
        """A contiguous copy."""
        copy = self.new(source.shape, source.dtype)
        self.add(_ATEN.clone.default, (source,), copy, memory_format=torch.contiguous_format)
        return copy

    def zeros_like(self, source: Layout) -> Layout:
        """Zeros laid out as a tensor is, which must be dense."""
        zeros = source._replace(storage=self.storage(source.bytes), offset=0)
        self.add(_ATEN.zeros_like.default, (source,), zeros)
        return zeros

    def all_reduce(self, source: Layout) -> Layout:
        """The sum over all workers of a dense tensor, laid out as that is."""
        total = self.new((source.elements,), source.dtype)
        flat = dense(source.storage, (source.elements,), source.dtype, source.offset)
        self.add(ALL_REDUCE, (flat, self.token, GROUP), total)
        return source._replace(storage=total.storage, offset=0)

    def convert(self, storage: int, dtype: torch.dtype, elements: int, have: Spread, want: Spread) -> int:
        """Bring a dense storage from one spread to another; the new storage, or the same if nothing is to be done.

        Args:
            storage: the storage.
            dtype: of its elements.
            elements: how many it has on a single device.
            have, want: how it is and is to be spread.
        """
        if have == want:
            return storage
        if isinstance(have, Cut) and isinstance(want, Cut):
            if have.block <= want.stride or want.block <= have.stride:
                return self._exchange(storage, dtype, elements, have, want)
            return self.convert(
                self.convert(storage, dtype, elements, have, Whole.EVERYWHERE),
                dtype, elements, Whole.EVERYWHERE, want,
            )  # fmt: skip
        if isinstance(have, Cut):
            if want is Whole.SUMMED:
                return self._among_zeros(storage, dtype, elements, have)
            return self._gather(storage, dtype, elements, have)
        if isinstance(want, Cut):
            if have is Whole.SUMMED:
                return self._scatter(storage, dtype, elements, want)
            first, last = chunk(want.size, self.workers, self.worker)
            shape = elements // want.block, last - first, want.stride
            return self.clone(Layout(storage, shape, (want.block, want.stride, 1), first * want.stride, dtype)).storage
        if want is Whole.SUMMED:
            return self._only_first(storage, dtype, elements)
        return self.all_reduce(dense(storage, (elements,), dtype)).storage

    def _only_first(self, storage: int, dtype: torch.dtype, elements: int) -> int:
        return storage if self.worker == 0 else self.zeros_like(dense(storage, (elements,), dtype)).storage

    def _among_zeros(self, storage: int, dtype: torch.dtype, elements: int, cut: Cut) -> int:
        """One's own chunk, and zeros where the others have theirs."""
        first, last = chunk(cut.size, self.workers, self.worker)
        shape = elements // cut.block, last - first, cut.stride
        zeros = self.new((elements,), dtype)
        self.add(_ATEN.zeros.default, ((elements,),), zeros, dtype=dtype)
        place = Layout(zeros.storage, shape, (cut.block, cut.stride, 1), first * cut.stride, dtype)
        self.add(_ATEN.copy_.default, (place, dense(storage, shape, dtype)), place)
        return zeros.storage

    def _gather(self, storage: int, dtype: torch.dtype, elements: int, cut: Cut) -> int:
        own, high = counts(cut.size, self.workers), elements // cut.block
        x = self._front(storage, dtype, (high, own[self.worker], cut.stride), (1, 0, 2))
        sizes = tuple(count * high * cut.stride for count in own)
        y = self.new((sum(sizes),), dtype)
        self.add(ALL_GATHER, (x, self.token, sizes, GROUP), y)
        return self._front(y.storage, dtype, (cut.size, high, cut.stride), (1, 0, 2)).storage

    def _scatter(self, storage: int, dtype: torch.dtype, elements: int, cut: Cut) -> int:
        own, high = counts(cut.size, self.workers), elements // cut.block
        x = self._front(storage, dtype, (high, cut.size, cut.stride), (1, 0, 2))
        sizes = tuple(count * high * cut.stride for count in own)
        y = self.new((sizes[self.worker],), dtype)
        self.add(REDUCE_SCATTER, (x, self.token, sizes, self.worker, GROUP), y)
        return self._front(y.storage, dtype, (own[self.worker], high, cut.stride), (1, 0, 2)).storage

    def _exchange(self, storage: int, dtype: torch.dtype, elements: int, have: Cut, want: Cut) -> int:
        """Every worker sends each other one what that is to have of its chunk."""
        upper, lower = (have, want) if have.stride > want.stride else (want, have)
        old, new = counts(have.size, self.workers), counts(want.size, self.workers)
        around = elements // upper.block, upper.stride // lower.block, lower.stride
        place = 1 if want is upper else 3  # of the factor that is to be cut, in (high, upper, middle, lower, low)
        other = 4 - place

        def shape(upper_size: int, lower_size: int) -> tuple[int, ...]:
            return around[0], upper_size, around[1], lower_size, around[2]

        def sizes(kept: int, cut: int) -> tuple[int, ...]:
            return shape(cut, kept) if want is upper else shape(kept, cut)

        order = (place, *(dimension for dimension in range(5) if dimension != place))
        x = self._front(storage, dtype, sizes(old[self.worker], want.size), order)
        rest = prod(around)
        send = tuple(rest * old[self.worker] * count for count in new)
        receive = tuple(rest * count * new[self.worker] for count in old)
        y = self.new((sum(receive),), dtype)
        self.add(ALL_TO_ALL, (x, self.token, send, receive, GROUP), y)
        pieces, offset = [], 0
        back = tuple(order.index(dimension) for dimension in range(5))
        for count, size in zip(old, receive, strict=True):
            of = sizes(count, new[self.worker])
            piece = dense(y.storage, tuple(of[dimension] for dimension in order), dtype, offset)
            pieces.append(permuted(piece, back))
            offset += size
        result = self.new(sizes(have.size, new[self.worker]), dtype)
        self.add(_ATEN.cat.default, (tuple(pieces), other), result)
        return result.storage

    def _front(self, storage: int, dtype: torch.dtype, shape: tuple[int, ...], order: tuple[int, ...]) -> Layout:
        """A storage with its dimensions in another order, as a flat tensor; without a copy if that changes nothing."""
        source = permuted(dense(storage, shape, dtype), order)
        if [place for place in order if shape[place] != 1] != [d for d in range(len(shape)) if shape[d] != 1]:
            source = self.clone(source)
        return dense(source.storage, (prod(shape),), dtype)


def dense(storage: int, shape: tuple[int, ...], dtype: torch.dtype, offset: int = 0) -> Layout:
    """A contiguous tensor in a storage."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return Layout(storage, shape, tuple(reversed(strides)), offset, dtype)


def permuted(layout: Layout, order: tuple[int, ...]) -> Layout:
    """A tensor with its dimensions in another order."""
    shape = tuple(layout.shape[place] for place in order)
    return layout._replace(shape=shape, strides=tuple(layout.strides[place] for place in order))


def refuse(op: str, why: str) -> StowageError:
    """The error for an op that no worker can compute its part of."""
    return StowageError(f"{op} cannot be computed in parts: {why}")
