"""The calls of one worker while they are put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from math import prod
from typing import Any

import torch

from planner.errors import StowageError
from planner.graph import Op, Phase
from planner.partition.tdl import Reduction
from planner.program import ALL_REDUCE, Event, Layout

_ATEN = torch.ops.aten


class WorkerEvents:
    """The calls of one worker.

    Args:
        mesh: how many parts each level cuts into.
        place: the worker's number at each level.
    """

    def __init__(self, mesh: tuple[int, ...], place: tuple[int, ...]) -> None:
        self.mesh, self.place = mesh, place
        self.events: list[Event] = []
        self.storage_bytes: list[int] = []
        self.phase, self.module, self.source = Phase.FORWARD, "", ""
        self.token = self.new((0,), torch.uint8)
        self._drawing: dict[int, int] = {}  # by op of the step, the place of its call that draws numbers

    @property
    def worker(self) -> int:
        """The worker's number among all of them."""
        return reduce(lambda number, level: number * level[0] + level[1], zip(self.mesh, self.place, strict=True), 0)

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

    def note_draw(self, op: Op) -> None:
        """Note that the last call draws the numbers of a random op, and which earlier call drew them first."""
        self._drawing[op.id] = len(self.events) - 1
        if op.draws_as >= 0:
            self.events[-1] = replace(self.events[-1], draws_as=self._drawing[op.draws_as])

    def clone(self, source: Layout) -> Layout:
        """A contiguous copy."""
        copy = self.new(source.shape, source.dtype)
        self.add(_ATEN.clone.default, (source,), copy, memory_format=torch.contiguous_format)
        return copy

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> Layout:
        """A new tensor with no particular contents, to be written into."""
        made = self.new(shape, dtype)
        self.add(_ATEN.empty.memory_format, (shape,), made, dtype=dtype)
        return made

    def zeros(self, shape: tuple[int, ...], dtype: torch.dtype) -> Layout:
        """A new tensor of zeros."""
        made = self.new(shape, dtype)
        self.add(_ATEN.zeros.default, (shape,), made, dtype=dtype)
        return made

    def copy(self, source: Layout, target: Layout) -> None:
        """Write a tensor into another."""
        self.add(_ATEN.copy_.default, (target, source), target)

    def zeros_like(self, source: Layout) -> Layout:
        """Zeros laid out as a tensor is, which must be dense."""
        zeros = source._replace(storage=self.storage(source.bytes), offset=0)
        self.add(_ATEN.zeros_like.default, (source,), zeros)
        return zeros

    def all_reduce(self, source: Layout, levels: Sequence[int], reduction: Reduction = Reduction.SUM) -> Layout:
        """A dense tensor reduced over the workers that have another number at some levels alone, laid out as it is."""
        total = self.new((source.elements,), source.dtype)
        flat = dense(source.storage, (source.elements,), source.dtype, source.offset)
        workers = prod(self.mesh[level] for level in levels)
        self.add(ALL_REDUCE, (flat, self.token, str(reduction), workers, group(levels)), total)
        return source._replace(storage=total.storage, offset=0)


def group(levels: Sequence[int]) -> str:
    """The name of the group of workers that have another number at some levels alone."""
    return ",".join(map(str, levels))


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
