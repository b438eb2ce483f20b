"""The calls that bring a storage from one spread to another: slices, sums, then exchanges level by level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch

from planner.partition.workers.events.worker_events import WorkerEvents, dense, group, permuted
from planner.partition.workers.tensors.boxes import (
    Box,
    Exchange,
    box_of,
    digits_of,
    exchange_between,
    is_partition,
    keeps,
    steps_between,
)
from planner.partition.workers.tensors.exchange import box_view, exchange
from planner.partition.workers.tensors.spreads import Cut, Spread, Whole, chunks, local_elements, refined, uncut
from planner.program import ALL_GATHER, REDUCE_SCATTER, Layout, members, places


def redistribute(
    calls: WorkerEvents, storage: int, dtype: torch.dtype, elements: int, have: Spread, want: Spread
) -> int:
    """Bring a dense storage from one spread to another; the new storage, or the same if nothing is to be done.

    Args:
        calls: of the worker.
        storage: its storage.
        dtype: of the elements.
        elements: how many the storage has on a single device.
        have, want: how it is spread, and how it is to be.
    """
    if not elements:
        return storage
    moved = _Redistribution(calls, storage, dtype, elements, have)
    moved.slice(want)
    moved.add_up(want)
    moved.exchange(want)
    moved.fill(want)
    return moved.storage


@dataclass
class _Redistribution:
    """A storage on its way, and how it is spread by now."""

    calls: WorkerEvents
    storage: int
    dtype: torch.dtype
    elements: int
    spread: Spread

    def slice(self, want: Spread) -> None:
        """Keep what levels cut that had everything: no worker needs another one for it."""
        sliced = self.spread
        for level, wanted in enumerate(want):
            if isinstance(wanted, Cut) and self.spread[level] is Whole.EVERYWHERE:
                candidate = _with(sliced, level, wanted)
                if keeps(self.elements, self.spread, candidate, self.calls.mesh):
                    sliced = candidate
        self._change(sliced)

    def add_up(self, want: Spread) -> None:
        """Add up summands: inner levels first, each worker only what it is to keep of the sum if it keeps a part."""
        pending = [level for level, here in enumerate(self.spread) if here is Whole.SUMMED is not want[level]]
        everywhere = []
        while pending:
            level = next(level for level in reversed(pending) if not _cut_before(want, level, pending))
            pending.remove(level)
            part = None if want[level] is Whole.EVERYWHERE else self._part_of_sum(level, want)
            if part is None:
                everywhere.append(level)
            else:
                self._reduce_scatter(level, part)
        if everywhere:
            levels = sorted(everywhere)
            self.storage = self.calls.all_reduce(self._dense(), levels).storage
            for level in levels:
                self.spread = _with(self.spread, level, Whole.EVERYWHERE)

    def exchange(self, want: Spread) -> None:
        """Send what others lack."""
        target = tuple(
            here if wanted is Whole.SUMMED else wanted for here, wanted in zip(self.spread, want, strict=True)
        )
        if not is_partition(self.elements, target):  # what is cut now and what is to be cut overlap
            target = tuple(
                Whole.EVERYWHERE if wanted is Whole.SUMMED is not here else level
                for level, wanted, here in zip(target, want, self.spread, strict=True)
            )
        steps = steps_between(self.elements, self.spread, target, self.calls.mesh)
        if steps is None:  # what is cut now is no factor of what is to be cut
            gathered = steps_between(self.elements, self.spread, uncut(self.spread), self.calls.mesh)
            assert gathered is not None
            steps = *gathered, target
        for step in steps:
            self._change(step)

    def fill(self, want: Spread) -> None:
        """Turn what is whole into summands: one worker's own, and zeros where others have theirs."""
        for level, wanted in enumerate(want):
            here = self.spread[level]
            if wanted is not Whole.SUMMED or here is Whole.SUMMED:
                continue
            larger = _with(self.spread, level, Whole.EVERYWHERE)
            if isinstance(here, Cut) and here in larger:  # an inner level cuts what this one has left
                self._change(larger)
                here = Whole.EVERYWHERE
            if here is Whole.EVERYWHERE:
                if self.calls.place[level]:
                    self.storage = self.calls.zeros_like(self._dense()).storage
            else:
                own, box = self._boxes(self.spread, larger)
                zeros = self.calls.zeros(_sizes(box), self.dtype)
                mine = box_view(self.storage, self.dtype, own, own)
                self.calls.copy(mine, box_view(zeros.storage, self.dtype, box, own))
                self.storage = zeros.storage
            self.spread = _with(self.spread, level, Whole.SUMMED)

    def _change(self, target: Spread) -> None:
        """Bring the storage to another spread of the same digits."""
        if target == self.spread:
            return
        if keeps(self.elements, self.spread, target, self.calls.mesh):
            own, kept = self._boxes(self.spread, target)
            self.storage = self.calls.clone(box_view(self.storage, self.dtype, own, kept)).storage
        else:
            found = exchange_between(self.elements, self.spread, target, self.calls.mesh)
            assert found is not None
            level = _gathered(self.spread, target, found)
            if level is None:
                self.storage = exchange(self.calls, self.storage, self.dtype, found)
            else:
                self._gather(level, found)
        self.spread = target

    def _boxes(self, *spreads: Spread) -> list[Box]:
        """What the worker has of the storage in each of several spreads, in the digits of all of them."""
        digits = digits_of(self.elements, *spreads)
        assert digits is not None
        boxes = [box_of(digits, spread, self.calls.mesh, self.calls.place) for spread in spreads]
        return [box for box in boxes if box is not None]

    def _part_of_sum(self, level: int, want: Spread) -> Spread | None:
        """The spread in which a level's summands are added up: as it is wanted, or else of another digit."""
        mesh = self.calls.mesh
        target = _with(self.spread, level, want[level])
        digits = digits_of(self.elements, target)
        if digits is not None and want[level] in digits and keeps(self.elements, self.spread, target, mesh):
            return target
        free = (digit for digit in digits_of(self.elements, self.spread) or () if digit not in self.spread)
        cut = next((digit for digit in free if digit.size >= mesh[level]), None)
        return None if cut is None else refined(_with(self.spread, level, cut), mesh)

    def _gather(self, level: int, found: Exchange) -> None:
        calls, cut = self.calls, self.spread[level]
        assert isinstance(cut, Cut)
        digit = found.digits.index(cut)
        group_of = members(calls.mesh, calls.place, (level,))
        own = _sizes(found.have[calls.worker])
        order = digit, *(place for place in range(len(own)) if place != digit)
        x = self._front(self.storage, own, order)
        rest = prod(size for place, size in enumerate(own) if place != digit)
        parts = [last - first for first, last in (found.have[member][digit] for member in group_of)]
        counts = [rest * part for part in parts]
        whole = list(own)
        whole[digit] = sum(parts)
        y = calls.new((sum(counts),), self.dtype)
        calls.add(ALL_GATHER, (x, calls.token, tuple(counts), group((level,))), y)
        self.storage = self._back(y.storage, tuple(whole), order)

    def _reduce_scatter(self, level: int, target: Spread) -> None:
        calls, cut = self.calls, target[level]
        digits = digits_of(self.elements, self.spread, target)
        assert isinstance(cut, Cut)
        assert digits is not None
        digit = digits.index(cut)
        have = _sizes(self._boxes(self.spread, target)[0])
        order = digit, *(place for place in range(len(have)) if place != digit)
        x = self._front(self.storage, have, order)
        parts = []
        for member in members(calls.mesh, calls.place, (level,)):
            first, last = chunks(target, calls.mesh, places(calls.mesh)[member])[cut]
            parts.append(last - first)
        rest = prod(size for place, size in enumerate(have) if place != digit)
        counts = tuple(rest * part for part in parts)
        rank = calls.place[level]
        y = calls.new((counts[rank],), self.dtype)
        calls.add(REDUCE_SCATTER, (x, calls.token, counts, rank, group((level,))), y)
        kept = tuple(parts[rank] if place == digit else size for place, size in enumerate(have))
        self.storage = self._back(y.storage, kept, order)
        self.spread = target

    def _dense(self) -> Layout:
        """All that the worker has, as a flat tensor."""
        own = chunks(self.spread, self.calls.mesh, self.calls.place)
        return dense(self.storage, (local_elements(self.elements, own),), self.dtype)

    def _front(self, storage: int, shape: tuple[int, ...], order: tuple[int, ...]) -> Layout:
        """A storage with its digits in another order, as a flat tensor; without a copy if that changes nothing."""
        source = dense(storage, shape, self.dtype)
        moved = [place for place in order if shape[place] != 1]
        if moved != sorted(moved):
            source = self.calls.clone(permuted(source, order))
        return dense(source.storage, (source.elements,), self.dtype)

    def _back(self, storage: int, shape: tuple[int, ...], order: tuple[int, ...]) -> int:
        """The storage whose digits, of a shape, are in another order, with its digits in their order."""
        back = tuple(order.index(place) for place in range(len(order)))
        return self._front(storage, tuple(shape[place] for place in order), back).storage


def _with(spread: Spread, level: int, value: Whole | Cut) -> Spread:
    return (*spread[:level], value, *spread[level + 1 :])


def _cut_before(want: Spread, level: int, levels: Sequence[int]) -> bool:
    """Whether an outer one of some levels cuts the digit that a level cuts, which is then cut there first."""
    return isinstance(want[level], Cut) and any(want[outer] == want[level] for outer in levels if outer < level)


def _gathered(have: Spread, want: Spread, found: Exchange) -> int | None:
    """The level at which members' parts, one after another, are what all of them want; None if it is no such case."""
    changed = [level for level, (old, new) in enumerate(zip(have, want, strict=True)) if old != new]
    level = changed[0]
    cut = have[level]
    if want[level] is not Whole.EVERYWHERE or not isinstance(cut, Cut) or found.levels != (level,):
        return None
    return None if cut in want[level + 1 :] or cut not in found.digits else level


def _sizes(box: Box) -> tuple[int, ...]:
    return tuple(last - first for first, last in box)
