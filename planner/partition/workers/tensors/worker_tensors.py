"""Where a worker has the tensors of a step: what each storage of its own holds, and how it gets at the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import torch

from planner.graph import Graph, Op, Phase
from planner.partition.parts import compacted
from planner.partition.plan import PartitionPlan
from planner.partition.strategy import Partial, Split, State, Unread
from planner.partition.tdl import Range, Reduction
from planner.partition.workers.events.worker_events import WorkerEvents, dense, permuted, refuse
from planner.partition.workers.tensors.boxes import boxes_of, digits_of, exchange_of
from planner.partition.workers.tensors.exchange import exchange
from planner.partition.workers.tensors.part_updates import fetch_overlaps, write_part
from planner.partition.workers.tensors.redistribute import redistribute
from planner.partition.workers.tensors.spreads import (
    Cut,
    Spread,
    Whole,
    chunks,
    cut_of,
    local_elements,
    local_part,
    refined,
    splits_of,
    uncut,
)
from planner.program import Layout, places


@dataclass(frozen=True, slots=True)
class StoredCopy:
    """Where a worker has what a storage of the whole graph holds, and how workers share it."""

    storage: int
    spread: Spread
    part: Layout | None = None  # of which alone it is a copy, as rows of its own


class WorkerTensors:
    """The tensors of one worker while its calls are put together.

    Args:
        plan: the partition.
        graph: the step that it is for.
        calls: of the worker, which redistributions are added to.
    """

    def __init__(self, plan: PartitionPlan, graph: Graph, calls: WorkerEvents) -> None:
        """Begin with no tensors."""
        self.plan, self.graph, self.calls = plan, graph, calls
        self._compacted = compacted(graph)
        self.mesh, self.place = calls.mesh, calls.place
        self.whole: Spread = (Whole.EVERYWHERE,) * len(plan.mesh)
        self.stored: dict[int, StoredCopy] = {}  # by storage of the graph
        self._fetched: dict[tuple[int, object, Spread, Phase], int] = {}  # by storage, part of it, spread and phase

    def layout(self, tensor: int) -> Layout:
        """A tensor as it is on a single device, in memory that what was made fills if possible."""
        found = self.graph.tensors[tensor]
        strides, offset = self._compacted.layouts.get(tensor, (found.strides, found.offset))
        return Layout(found.storage, found.shape, strides, offset, getattr(torch, found.dtype))

    def _bytes(self, storage: int, dtype: torch.dtype) -> int:
        """What a storage takes on a single device if what was made in it fills it."""
        elements = self._compacted.elements.get(storage)
        return self.graph.storages[storage].bytes if elements is None else elements * dtype.itemsize

    def existing(self, tensor: int) -> Layout:
        """A tensor that exists before the step; tensors that share memory share it here."""
        storage = self.graph.tensors[tensor].storage
        name = self.graph.tensors[tensor].name
        if storage not in self.stored:
            spread = self.spread(tensor, self.plan.tensors[tensor], name)
            if Whole.SUMMED in spread:
                raise refuse(name, "it exists before the step and cannot be a partial sum")
            self.stored[storage] = StoredCopy(self.new(tensor, spread).storage, spread)
        held = self.stored[storage]
        local = self._local(self.layout(tensor), held.storage, held.spread)
        if local is None:
            raise refuse(name, "the split of its memory is none of its own")
        return local

    def new(self, tensor: int, spread: Spread) -> Layout:
        """A new storage for a whole tensor in a spread."""
        layout = self.layout(tensor)
        name = self.graph.tensors[tensor].name
        if not self._covers(layout) and spread != self.whole:
            raise refuse(name, "it does not fill its memory, as a slice does; give a copy of it (.clone())")
        size = local_elements(self._bytes(layout.storage, layout.dtype), chunks(spread, self.mesh, self.place))
        local = self._local(layout, self.calls.storage(size), spread)
        if local is None:
            raise refuse(name, "its split is not one of its memory")
        return local

    def fetch(self, tensor: int, states: Sequence[State | None], where: str, ranges: Collection[int] = ()) -> Layout:
        """A tensor in the states in which an op needs it; `ranges` as in `spread_in`.

        Raises:
            StowageError: the worker cannot be brought such a part of it.
        """
        layout = self.layout(tensor)
        repeated = {dimension for dimension, stride in enumerate(layout.strides) if stride == 0}
        once = layout._replace(shape=tuple(1 if d in repeated else size for d, size in enumerate(layout.shape)))
        # the same elements again and again: every worker has all of them, and repeats them as often as it needs
        apart = [None if isinstance(state, Split) and state.dimension in repeated else state for state in states]
        found = self._fetch(tensor, once, apart, where, ranges)
        if once == layout:
            return found
        rows = dense(0, layout.shape, layout.dtype)
        part = local_part(rows, chunks(self.spread_in(rows, states, where, ranges), self.mesh, self.place))
        assert part is not None
        strides = tuple(0 if dimension in repeated else stride for dimension, stride in enumerate(found.strides))
        return found._replace(shape=part.shape, strides=strides)

    def _fetch(
        self, tensor: int, layout: Layout, states: Sequence[State | None], where: str, ranges: Collection[int]
    ) -> Layout:
        want = self.spread_in(layout, states, where, ranges)
        held = self.stored.get(layout.storage)
        if held is None:
            raise refuse(where, f"{self.graph.tensors[tensor].name} is read before it is written")
        if held.spread == want:
            local = self._local(layout, held.storage, want)
            if local is not None:
                return local
        if self._covers(layout):
            converted = self._converted(layout.storage, layout.dtype, held, want)
            local = self._local(layout, converted, want)
            if local is None:
                raise refuse(where, f"a split of {self.graph.tensors[tensor].name} is none of its memory")
            return local
        return self._fetch_view(layout, held, states, where, ranges)

    def spread(self, tensor: int, states: Sequence[State | None], where: str, ranges: Collection[int] = ()) -> Spread:
        """A tensor's states as a spread of its storage; `ranges` as in `spread_in`."""
        return self.spread_in(self.layout(tensor), states, where, ranges)

    def spread_in(
        self, layout: Layout, states: Sequence[State | None], where: str, ranges: Collection[int] = ()
    ) -> Spread:
        """The states of a tensor as a spread of the storage that a layout of it is dense in.

        Args:
            layout: the tensor.
            states: per level.
            where: for messages.
            ranges: dimensions of which every worker must have a range, so that levels cut what others have left of
                them and not a digit of their own.

        Raises:
            StowageError: workers' parts are no chunks, or some have none.
        """
        found: list[Whole | Cut] = []
        kept: dict[int, Cut] = {}
        for level, state in enumerate(states):
            if isinstance(state, Partial):
                if state.reduction is not Reduction.SUM:
                    raise refuse(where, f"{state.reduction.value} over workers is not supported")
                found.append(Whole.SUMMED)
            elif isinstance(state, Split):
                if state.halo:
                    raise refuse(where, "its workers would need more than their chunks")
                if state.dimension in ranges:
                    kept[level] = cut_of(layout, state)
                found.append(Whole.EVERYWHERE if level in kept else cut_of(layout, state))
            else:
                found.append(Whole.EVERYWHERE)
        spread = tuple(kept.get(level, cut) for level, cut in enumerate(refined(tuple(found), self.mesh)))
        if not all(self._serves_all(spread)):
            raise refuse(where, f"a tensor of shape {list(layout.shape)} has no chunk for every worker")
        return spread

    def _local(self, layout: Layout, storage: int, spread: Spread) -> Layout | None:
        """A tensor of the graph in the worker's storage; None if the spread divides what is no factor of it."""
        found = local_part(layout, chunks(spread, self.mesh, self.place))
        return None if found is None else found._replace(storage=storage)

    def fetch_region(
        self, tensor: int, states: Sequence[State | None], needs: Mapping[int, Sequence[Range | None]], where: str,
        ranges: Collection[int],
    ) -> Layout:  # fmt: skip
        """A tensor of which every worker has a range of some dimensions; none of them if it needs nothing of it.

        Args:
            tensor: which.
            states: how the op needs it along other dimensions.
            needs: by dimension that is needed in part, per worker, the first and last (exclusive) index of it.
            where, ranges: as in `spread_in`.

        Raises:
            StowageError: other parts are cut than ranges.
        """
        layout = self.layout(tensor)
        held = self.stored.get(layout.storage)
        if held is None:
            raise refuse(where, f"{self.graph.tensors[tensor].name} is read before it is written")
        summed = [isinstance(state, Partial) for state in states]  # these levels each move their own summands
        spread: Spread = tuple(
            Whole.SUMMED if apart else Whole.EVERYWHERE if level is Whole.SUMMED else level
            for apart, level in zip(summed, held.spread, strict=True)
        )
        storage = self._converted(layout.storage, layout.dtype, held, spread)
        if not self._covers(layout):
            layout, storage, spread = self._copied(layout, storage, spread)
        want = self.spread_in(layout, states, where, ranges)
        cuts = {
            Cut(layout.strides[dimension], layout.shape[dimension]): each for dimension, each in needs.items()
            if layout.shape[dimension] > 1
        }  # fmt: skip
        elements = layout.elements
        digits = digits_of(elements, spread, want, tuple(cuts))
        held_boxes = None if digits is None else boxes_of(digits, spread, self.mesh)
        if held_boxes is None:
            whole = uncut(spread)
            storage, spread = redistribute(self.calls, storage, layout.dtype, elements, spread, whole), whole
            digits = digits_of(elements, want, tuple(cuts))
            held_boxes = None if digits is None else boxes_of(digits, spread, self.mesh)
        boxes = None if digits is None else boxes_of(digits, want, self.mesh)
        if digits is None or held_boxes is None or boxes is None or not cuts.keys() <= set(digits) - set(want):
            dimensions = " and ".join(map(str, needs))
            raise refuse(where, f"dimension {dimensions} of {self.graph.tensors[tensor].name} is divided in two ways")
        wanted = []
        for worker, box in enumerate(boxes):
            own = list(box)
            for cut, each in cuts.items():
                own[digits.index(cut)] = each[worker] or (0, 0)
            if any(each[worker] is None for each in needs.values()):
                own = [(0, 0)] * len(own)
            wanted.append(tuple(own))
        levels = tuple(level for level, apart in enumerate(summed) if not apart)
        found = exchange_of(digits, held_boxes, tuple(wanted), self.mesh, levels)
        assert found is not None
        storage = exchange(self.calls, storage, layout.dtype, found)
        mine = {cut: each[self.calls.worker] or (0, 0) for cut, each in cuts.items()}
        local = local_part(layout, chunks(want, self.mesh, self.place) | mine)
        assert local is not None
        local = local._replace(storage=storage)
        nothing = {dimension for dimension, each in needs.items() if each[self.calls.worker] is None}
        return local._replace(shape=tuple(0 if d in nothing else size for d, size in enumerate(local.shape)))

    def _copied(self, layout: Layout, storage: int, spread: Spread) -> tuple[Layout, int, Spread]:
        """A part of a storage as a storage of its own: its layout in it, where it is, and the spread in its terms."""
        splits = splits_of(layout, spread)
        if splits is None:
            elements = self._bytes(layout.storage, layout.dtype) // layout.dtype.itemsize
            whole = uncut(spread)
            storage = redistribute(self.calls, storage, layout.dtype, elements, spread, whole)
            splits, spread = (None,) * len(whole), whole
        rows = dense(0, layout.shape, layout.dtype)
        source = self._local(layout, storage, spread)
        assert source is not None
        return rows, self.calls.clone(source).storage, _in_rows(rows, splits, spread)

    def updated(
        self, op: Op, wants: Mapping[int, tuple[State, ...]], gives: Mapping[int, tuple[State, ...]]
    ) -> dict[int, StoredCopy]:
        """By storage that an op updates in place, where it does so: a copy if the op needs it spread otherwise."""
        found: dict[int, StoredCopy] = {}
        for tensor in op.outputs:
            storage = self.graph.tensors[tensor].storage
            if storage not in self.stored or storage in found:
                continue
            held, layout = self.stored[storage], self.layout(tensor)
            reads = [
                read for read, states in wants.items()
                if self.graph.tensors[read].storage == storage and not any(isinstance(want, Unread) for want in states)
            ]  # fmt: skip
            if not self._covers(layout):
                read = any(self.layout(read) == layout for read in reads)
                found[storage] = self._part_to_update(op, tensor, gives[tensor], held, read)
                continue
            spread = self.spread(tensor, gives[tensor], op.name)
            if held.spread == spread:
                found[storage] = held
            elif reads:
                copy = redistribute(self.calls, held.storage, layout.dtype, layout.elements, held.spread, spread)
                if copy in (held.storage, *self._fetched.values()):
                    copy = self.calls.clone(self._flat(copy, layout, spread)).storage
                found[storage] = StoredCopy(copy, spread)
            else:
                local = self._flat(0, layout, spread)
                found[storage] = StoredCopy(self.calls.empty(local.shape, local.dtype).storage, spread)
        return found

    def _part_to_update(
        self, op: Op, tensor: int, states: tuple[State, ...], held: StoredCopy, read: bool
    ) -> StoredCopy:  # fmt: skip
        """Where an op updates a part of a storage: in it, or in rows of its own if the op needs it spread otherwise."""
        layout = self.layout(tensor)
        partial = any(isinstance(state, Partial) for state in states)
        splits = tuple(state if isinstance(state, Split) else None for state in states)
        if splits_of(layout, held.spread) == splits and not partial:
            return held
        rows = dense(0, layout.shape, layout.dtype)
        spread = self.spread_in(rows, states, op.name)
        local = local_part(rows, chunks(spread, self.mesh, self.place))
        assert local is not None
        copy = self.calls.empty(local.shape, layout.dtype)
        if read:
            self.calls.copy(self.fetch(tensor, states, op.name), copy)
        return StoredCopy(copy.storage, spread, layout)

    def to_update(self, op: Op, tensor: int, states: Sequence[State], updated: dict[int, StoredCopy]) -> Layout:
        """A tensor that an op reads and writes in place, or writes."""
        name, layout = self.graph.tensors[tensor].name, self.layout(tensor)
        found = updated[layout.storage]
        if found.part is not None:
            return self._rows_to_update(op, tensor, states, found)
        unread = any(isinstance(state, Unread) for state in states)
        if not unread and self.spread(tensor, states, op.name) != found.spread:
            raise refuse(op.name, f"it reads {name} in one spread and writes it in another")
        local = self._local(layout, found.storage, found.spread)
        if local is None:
            raise refuse(op.name, f"it writes into a part of {name} across chunks")
        return local

    def _rows_to_update(self, op: Op, tensor: int, states: Sequence[State], found: StoredCopy) -> Layout:
        """A part of a storage that an op updates in rows of its own, or another part of it, which it only reads."""
        layout = self.layout(tensor)
        rows = dense(found.storage, layout.shape, layout.dtype)
        if layout != found.part:
            if tensor in op.outputs:
                raise refuse(op.name, f"it writes into several parts of {self.graph.tensors[tensor].name}")
            return self.fetch(tensor, states, op.name)
        unread = any(isinstance(state, Unread) for state in states)
        if not unread and self.spread_in(rows, states, op.name) != found.spread:
            raise refuse(op.name, f"it reads {self.graph.tensors[tensor].name} in one spread and writes it in another")
        local = local_part(rows, chunks(found.spread, self.mesh, self.place))
        assert local is not None
        return local

    def settle(self, tensor: int, layout: Layout, spread: Spread) -> None:
        """Bring what an op has made to how it is stored."""
        stored = self.spread(tensor, self.plan.tensors[tensor], self.graph.tensors[tensor].name)
        elements = prod(self.graph.tensors[tensor].shape)
        found = redistribute(self.calls, layout.storage, layout.dtype, elements, spread, stored)
        self.stored[self.graph.tensors[tensor].storage] = StoredCopy(found, stored)

    def drop_fetched(self, storage: int) -> None:
        """Fetch a storage again when it is needed again, because it was written to."""
        for key in [key for key in self._fetched if key[0] == storage]:
            del self._fetched[key]

    def write_back(self, storage: int, copy: StoredCopy) -> None:
        """Bring what was updated in a copy to where it is stored."""
        held = self.stored[storage]
        if copy.storage == held.storage:
            return
        if copy.part is not None:
            write_part(self.calls, copy.storage, copy.spread, copy.part, held.storage, held.spread)
            return
        tensor = next(tensor for tensor in self.graph.tensors if tensor.storage == storage and tensor.base < 0)
        layout = self.layout(tensor.id)
        found = redistribute(self.calls, copy.storage, layout.dtype, layout.elements, copy.spread, held.spread)
        self.calls.copy(self._flat(found, layout, held.spread), self._flat(held.storage, layout, held.spread))

    def shaped(self, op: Op, tensor: int, gives: Mapping[int, tuple[State, ...]]) -> Layout:
        """What stands for an input of which only the shape matters: memory that nothing is written to."""
        layout = self.layout(tensor)
        like = next((output for output in op.outputs if self.graph.tensors[output].shape == layout.shape), None)
        given: Sequence[State | None] = (None,) * len(self.mesh) if like is None else gives[like]
        states = [state if isinstance(state, Split) else None for state in given]
        held = self.stored.get(layout.storage)
        if held is not None:
            shaped = tuple(Whole.EVERYWHERE if level is Whole.SUMMED else level for level in held.spread)
            local = self._local(layout, held.storage, held.spread)
            if local is not None and shaped == self.spread(tensor, states, op.name):
                return local
        if not layout.shape:
            return self.calls.new((), layout.dtype)
        rows = dense(0, layout.shape, layout.dtype)
        part = local_part(rows, chunks(self.spread_in(rows, states, op.name), self.mesh, self.place))
        assert part is not None
        return self.calls.empty(part.shape, layout.dtype)

    def _flat(self, storage: int, layout: Layout, spread: Spread) -> Layout:
        """All that the worker has of a storage, as a flat tensor."""
        elements = local_elements(layout.elements, chunks(spread, self.mesh, self.place))
        return dense(storage, (elements,), layout.dtype)

    def _covers(self, layout: Layout) -> bool:
        return layout.dense and layout.offset == 0 and layout.bytes == self._bytes(layout.storage, layout.dtype)

    def _serves_all(self, spread: Spread) -> Iterator[bool]:
        if any(isinstance(level, Cut) for level in spread):
            for place in places(self.mesh):
                yield all(last > first for first, last in chunks(spread, self.mesh, place).values())

    def _converted(self, storage: int, dtype: torch.dtype, held: StoredCopy, want: Spread) -> int:
        """A storage's contents in another spread, brought there once per phase."""
        if held.spread == want:
            return held.storage
        key = storage, None, want, self.calls.phase
        if key not in self._fetched:
            elements = self._bytes(storage, dtype) // dtype.itemsize
            self._fetched[key] = redistribute(self.calls, held.storage, dtype, elements, held.spread, want)
        return self._fetched[key]

    def _fetch_view(
        self, layout: Layout, held: StoredCopy, states: Sequence[State | None], where: str, ranges: Collection[int]
    ) -> Layout:
        """A tensor that is only a part of its memory: that part alone is copied and brought to the spread."""
        wholly = not any(isinstance(state, Split | Partial) for state in states)
        if wholly and held.spread == self.whole:
            return layout._replace(storage=held.storage)
        order = tuple(sorted(range(len(layout.shape)), key=lambda dimension: -layout.strides[dimension]))
        back = tuple(order.index(dimension) for dimension in range(len(order)))
        layout = permuted(layout, order)  # a view and its transpose are fetched once
        splits = splits_of(layout, held.spread)
        if splits is None and (found := self._fetch_overlaps(layout, held, order, states, where, ranges)) is not None:
            return permuted(found, back)
        if splits is None:
            whole = self._converted(layout.storage, layout.dtype, held, self.whole)
            held, splits = StoredCopy(whole, self.whole), (None,) * len(self.whole)
            if wholly:
                return permuted(layout._replace(storage=whole), back)
        rows = dense(0, layout.shape, layout.dtype)  # the copy's own memory is that of its rows
        spread = _in_rows(rows, splits, held.spread)
        want = self.spread_in(rows, _asked(order, states), where, {order.index(dimension) for dimension in ranges})
        key = layout.storage, layout, want, self.calls.phase
        if key not in self._fetched:
            source = self._local(layout, held.storage, held.spread)
            assert source is not None
            copy = self.calls.clone(source)
            self._fetched[key] = redistribute(self.calls, copy.storage, layout.dtype, layout.elements, spread, want)
        found = self._local(rows, self._fetched[key], want)
        assert found is not None
        return permuted(found, back)

    def _fetch_overlaps(
        self, layout: Layout, held: StoredCopy, order: Sequence[int], states: Sequence[State | None], where: str,
        ranges: Collection[int],
    ) -> Layout | None:  # fmt: skip
        """A slice of which every worker has some rows, brought to a spread; None if these are no ranges of it."""
        rows = dense(0, layout.shape, layout.dtype)
        want = self.spread_in(rows, _asked(order, states), where, {order.index(dimension) for dimension in ranges})
        if Whole.SUMMED in (*want, *held.spread):
            return None
        key = layout.storage, layout, want, self.calls.phase
        if key not in self._fetched:
            found = fetch_overlaps(self.calls, layout, held.storage, held.spread, want)
            if found is None:
                return None
            self._fetched[key] = found
        return self._local(rows, self._fetched[key], want)


def _asked(order: Sequence[int], states: Sequence[State | None]) -> list[State | None]:
    """States of a tensor as those of it with its dimensions in another order."""
    return [
        replace(state, dimension=order.index(state.dimension)) if isinstance(state, Split) else state
        for state in states
    ]


def _in_rows(rows: Layout, splits: Sequence[Split | None], spread: Spread) -> Spread:
    """A spread of the tensor in which splits of rows are cuts of the memory of a copy of them."""
    return tuple(level if split is None else cut_of(rows, split) for split, level in zip(splits, spread, strict=True))
