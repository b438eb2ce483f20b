"""How a worker gets at tensors in the states in which its ops need them: from its own memory or from other workers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import torch

from planner.graph import Op, Phase
from planner.partition.strategy import Partial, Split, State
from planner.partition.tdl import Range
from planner.partition.workers.events.worker_events import dense, permuted, refuse
from planner.partition.workers.tensors.boxes import boxes_of, digits_of, exchange_of
from planner.partition.workers.tensors.exchange import exchange
from planner.partition.workers.tensors.part_updates import fetch_overlaps
from planner.partition.workers.tensors.redistribute import redistribute
from planner.partition.workers.tensors.spreads import Cut, Spread, Whole, chunks, cut_of, local_part, splits_of, uncut
from planner.partition.workers.tensors.stored_tensors import StoredCopy, StoredTensors
from planner.program import Layout


class FetchedTensors:
    """Brings one worker its parts of tensors, the same part once per phase.

    Args:
        tensors: where the worker has what is fetched.
    """

    def __init__(self, tensors: StoredTensors) -> None:
        """Begin with nothing fetched."""
        self._tensors, self._graph, self._calls, self._mesh = tensors, tensors.graph, tensors.calls, tensors.mesh
        self._fetched: dict[tuple[int, object, Spread, Phase], int] = {}  # by storage, part of it, spread and phase

    def shares(self, storage: int) -> bool:
        """Whether a storage of the worker is what it fetched, and may be given to other ops too."""
        return storage in self._fetched.values()

    def fetch(self, tensor: int, states: Sequence[State | None], where: str, ranges: Collection[int] = ()) -> Layout:
        """A tensor in the states in which an op needs it; `ranges` as in `spread_in`.

        Raises:
            StowageError: the worker cannot be brought such a part of it.
        """
        layout = self._tensors.layout(tensor)
        repeated = {dimension for dimension, stride in enumerate(layout.strides) if stride == 0}
        once = layout._replace(shape=tuple(1 if d in repeated else size for d, size in enumerate(layout.shape)))
        # the same elements again and again: every worker has all of them, and repeats them as often as it needs
        apart = [None if isinstance(state, Split) and state.dimension in repeated else state for state in states]
        found = self._fetch(tensor, once, apart, where, ranges)
        if once == layout:
            return found
        rows = dense(0, layout.shape, layout.dtype)
        spread = self._tensors.spread_in(rows, states, where, ranges)
        part = local_part(rows, chunks(spread, self._mesh, self._calls.place))
        assert part is not None
        strides = tuple(0 if dimension in repeated else stride for dimension, stride in enumerate(found.strides))
        return found._replace(shape=part.shape, strides=strides)

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
        layout = self._tensors.layout(tensor)
        held = self._tensors.stored.get(layout.storage)
        if held is None:
            raise refuse(where, f"{self._graph.tensors[tensor].name} is read before it is written")
        if not layout.elements:
            return self._without_elements(layout, states, needs, where)
        summed = [isinstance(state, Partial) for state in states]  # these levels each move their own summands
        spread: Spread = tuple(
            Whole.SUMMED if apart else Whole.EVERYWHERE if level is Whole.SUMMED else level
            for apart, level in zip(summed, held.spread, strict=True)
        )
        storage = self._converted(layout.storage, layout.dtype, held, spread)
        if not self._tensors.covers(layout):
            layout, storage, spread = self._copied(layout, storage, spread)
        want = self._tensors.spread_in(layout, states, where, ranges)
        cuts = {
            Cut(layout.strides[dimension], layout.shape[dimension]): each for dimension, each in needs.items()
            if layout.shape[dimension] > 1
        }  # fmt: skip
        elements = layout.elements
        digits = digits_of(elements, spread, want, tuple(cuts))
        held_boxes = None if digits is None else boxes_of(digits, spread, self._mesh)
        if held_boxes is None:
            whole = uncut(spread)
            storage, spread = redistribute(self._calls, storage, layout.dtype, elements, spread, whole), whole
            digits = digits_of(elements, want, tuple(cuts))
            held_boxes = None if digits is None else boxes_of(digits, spread, self._mesh)
        boxes = None if digits is None else boxes_of(digits, want, self._mesh)
        if digits is None or held_boxes is None or boxes is None or not cuts.keys() <= set(digits) - set(want):
            dimensions = " and ".join(map(str, needs))
            raise refuse(where, f"dimension {dimensions} of {self._graph.tensors[tensor].name} is divided in two ways")
        wanted = []
        for worker, box in enumerate(boxes):
            own = list(box)
            for cut, each in cuts.items():
                own[digits.index(cut)] = each[worker] or (0, 0)
            if any(each[worker] is None for each in needs.values()):
                own = [(0, 0)] * len(own)
            wanted.append(tuple(own))
        levels = tuple(level for level, apart in enumerate(summed) if not apart)
        found = exchange_of(digits, held_boxes, tuple(wanted), self._mesh, levels)
        assert found is not None
        storage = exchange(self._calls, storage, layout.dtype, found)
        mine = {cut: each[self._calls.worker] or (0, 0) for cut, each in cuts.items()}
        local = local_part(layout, chunks(want, self._mesh, self._calls.place) | mine)
        assert local is not None
        local = local._replace(storage=storage)
        nothing = {dimension for dimension, each in needs.items() if each[self._calls.worker] is None}
        return local._replace(shape=tuple(0 if d in nothing else size for d, size in enumerate(local.shape)))

    def shaped(self, op: Op, tensor: int, gives: Mapping[int, tuple[State, ...]]) -> Layout:
        """What stands for an input of which only the shape matters: memory that nothing is written to."""
        layout = self._tensors.layout(tensor)
        like = next((output for output in op.outputs if self._graph.tensors[output].shape == layout.shape), None)
        given: Sequence[State | None] = (None,) * len(self._mesh) if like is None else gives[like]
        states = [state if isinstance(state, Split) else None for state in given]
        held = self._tensors.stored.get(layout.storage)
        if held is not None:
            shaped = tuple(Whole.EVERYWHERE if level is Whole.SUMMED else level for level in held.spread)
            local = self._tensors.local(layout, held.storage, held.spread)
            if local is not None and shaped == self._tensors.spread(tensor, states, op.name):
                return local
        if not layout.shape:
            return self._calls.new((), layout.dtype)
        rows = dense(0, layout.shape, layout.dtype)
        part = local_part(rows, chunks(self._tensors.spread_in(rows, states, op.name), self._mesh, self._calls.place))
        assert part is not None
        return self._calls.empty(part.shape, layout.dtype)

    def drop_fetched(self, storage: int) -> None:
        """Fetch a storage again when it is needed again, because it was written to."""
        for key in [key for key in self._fetched if key[0] == storage]:
            del self._fetched[key]

    def _fetch(
        self, tensor: int, layout: Layout, states: Sequence[State | None], where: str, ranges: Collection[int]
    ) -> Layout:
        want = self._tensors.spread_in(layout, states, where, ranges)
        held = self._tensors.stored.get(layout.storage)
        if held is None:
            raise refuse(where, f"{self._graph.tensors[tensor].name} is read before it is written")
        if held.spread == want:
            local = self._tensors.local(layout, held.storage, want)
            if local is not None:
                return local
        if self._tensors.covers(layout):
            converted = self._converted(layout.storage, layout.dtype, held, want)
            local = self._tensors.local(layout, converted, want)
            if local is None:
                raise refuse(where, f"a split of {self._graph.tensors[tensor].name} is none of its memory")
            return local
        return self._fetch_view(layout, held, states, where, ranges)

    def _converted(self, storage: int, dtype: torch.dtype, held: StoredCopy, want: Spread) -> int:
        """A storage's contents in another spread, brought there once per phase."""
        if held.spread == want:
            return held.storage
        key = storage, None, want, self._calls.phase
        if key not in self._fetched:
            elements = self._tensors.size(storage, dtype) // dtype.itemsize
            self._fetched[key] = redistribute(self._calls, held.storage, dtype, elements, held.spread, want)
        return self._fetched[key]

    def _without_elements(
        self, layout: Layout, states: Sequence[State | None], needs: Mapping[int, Sequence[Range | None]], where: str
    ) -> Layout:
        """What stands for a part of a tensor that has no elements: memory of its own, of no bytes."""
        rows = dense(0, layout.shape, layout.dtype)
        part = local_part(rows, chunks(self._tensors.spread_in(rows, states, where), self._mesh, self._calls.place))
        assert part is not None
        shape = list(part.shape)
        for dimension, ranges in needs.items():
            first, last = ranges[self._calls.worker] or (0, 0)
            shape[dimension] = last - first
        return self._calls.empty(tuple(shape), layout.dtype)

    def _copied(self, layout: Layout, storage: int, spread: Spread) -> tuple[Layout, int, Spread]:
        """A part of a storage as a storage of its own: its layout in it, where it is, and the spread in its terms."""
        splits = splits_of(layout, spread)
        if splits is None:
            elements = self._tensors.size(layout.storage, layout.dtype) // layout.dtype.itemsize
            whole = uncut(spread)
            storage = redistribute(self._calls, storage, layout.dtype, elements, spread, whole)
            splits, spread = (None,) * len(whole), whole
        rows = dense(0, layout.shape, layout.dtype)
        source = self._tensors.local(layout, storage, spread)
        assert source is not None
        return rows, self._calls.clone(source).storage, _in_rows(rows, splits, spread)

    def _fetch_view(
        self, layout: Layout, held: StoredCopy, states: Sequence[State | None], where: str, ranges: Collection[int]
    ) -> Layout:
        """A tensor that is only a part of its memory: that part alone is copied and brought to the spread."""
        wholly = not any(isinstance(state, Split | Partial) for state in states)
        if wholly and held.spread == self._tensors.whole:
            return layout._replace(storage=held.storage)
        order = tuple(sorted(range(len(layout.shape)), key=lambda dimension: -layout.strides[dimension]))
        back = tuple(order.index(dimension) for dimension in range(len(order)))
        layout = permuted(layout, order)  # a view and its transpose are fetched once
        splits = splits_of(layout, held.spread)
        if splits is None and (found := self._fetch_overlaps(layout, held, order, states, where, ranges)) is not None:
            return permuted(found, back)
        if splits is None:
            whole = self._converted(layout.storage, layout.dtype, held, self._tensors.whole)
            held, splits = StoredCopy(whole, self._tensors.whole), (None,) * len(self._tensors.whole)
            if wholly:
                return permuted(layout._replace(storage=whole), back)
        rows = dense(0, layout.shape, layout.dtype)  # the copy's own memory is that of its rows
        spread = _in_rows(rows, splits, held.spread)
        want = self._asked(rows, order, states, where, ranges)
        key = layout.storage, layout, want, self._calls.phase
        if key not in self._fetched:
            source = self._tensors.local(layout, held.storage, held.spread)
            assert source is not None
            copy = self._calls.clone(source)
            self._fetched[key] = redistribute(self._calls, copy.storage, layout.dtype, layout.elements, spread, want)
        found = self._tensors.local(rows, self._fetched[key], want)
        assert found is not None
        return permuted(found, back)

    def _fetch_overlaps(
        self, layout: Layout, held: StoredCopy, order: Sequence[int], states: Sequence[State | None], where: str,
        ranges: Collection[int],
    ) -> Layout | None:  # fmt: skip
        """A slice of which every worker has some rows, brought to a spread; None if these are no ranges of it."""
        rows = dense(0, layout.shape, layout.dtype)
        want = self._asked(rows, order, states, where, ranges)
        if Whole.SUMMED in (*want, *held.spread):
            return None
        key = layout.storage, layout, want, self._calls.phase
        if key not in self._fetched:
            found = fetch_overlaps(self._calls, layout, held.storage, held.spread, want)
            if found is None:
                return None
            self._fetched[key] = found
        return self._tensors.local(rows, self._fetched[key], want)

    def _asked(
        self, rows: Layout, order: Sequence[int], states: Sequence[State | None], where: str, ranges: Collection[int]
    ) -> Spread:
        """States of a tensor as a spread of rows of their own that have its dimensions in another order."""
        reordered = [
            replace(state, dimension=order.index(state.dimension)) if isinstance(state, Split) else state
            for state in states
        ]
        return self._tensors.spread_in(rows, reordered, where, {order.index(dimension) for dimension in ranges})


def _in_rows(rows: Layout, splits: Sequence[Split | None], spread: Spread) -> Spread:
    """A spread of the tensor in which splits of rows are cuts of the memory of a copy of them."""
    return tuple(level if split is None else cut_of(rows, split) for split, level in zip(splits, spread, strict=True))
