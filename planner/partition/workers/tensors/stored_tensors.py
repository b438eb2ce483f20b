"""Where a worker has the tensors of a step, and how each storage of its own is spread over workers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import torch

from planner.graph import Graph
from planner.partition.parts import compacted
from planner.partition.plan import PartitionPlan
from planner.partition.strategy import Partial, Split, State
from planner.partition.tdl import Reduction
from planner.partition.workers.events.worker_events import WorkerEvents, dense, refuse
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
)
from planner.program import Layout, places


@dataclass(frozen=True, slots=True)
class StoredCopy:
    """Where a worker has what a storage of the whole graph holds, and how workers share it."""

    storage: int
    spread: Spread
    part: Layout | None = None  # of which alone it is a copy, as rows of its own


class StoredTensors:
    """The tensors that one worker has while its calls are put together.

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

    def layout(self, tensor: int) -> Layout:
        """A tensor as it is on a single device, in memory that what was made fills if possible."""
        found = self.graph.tensors[tensor]
        strides, offset = self._compacted.layouts.get(tensor, (found.strides, found.offset))
        return Layout(found.storage, found.shape, strides, offset, getattr(torch, found.dtype))

    def size(self, storage: int, dtype: torch.dtype) -> int:
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
        local = self.local(self.layout(tensor), held.storage, held.spread)
        if local is None:
            raise refuse(name, "the split of its memory is none of its own")
        return local

    def new(self, tensor: int, spread: Spread) -> Layout:
        """A new storage for a whole tensor in a spread."""
        layout = self.layout(tensor)
        name = self.graph.tensors[tensor].name
        if not self.covers(layout) and spread != self.whole:
            raise refuse(name, "it does not fill its memory, as a slice does; give a copy of it (.clone())")
        size = local_elements(self.size(layout.storage, layout.dtype), chunks(spread, self.mesh, self.place))
        local = self.local(layout, self.calls.storage(size), spread)
        if local is None:
            raise refuse(name, "its split is not one of its memory")
        return local

    def begin(self, storage: int) -> None:
        """Give a storage of which an op writes a part before all of it was written: memory with no contents yet."""
        tensor = next(each for each in self.graph.tensors if each.storage == storage and each.base < 0)
        states = [None if isinstance(state, Partial) else state for state in self.plan.tensors[tensor.id]]
        spread = self.spread(tensor.id, states, tensor.name)
        flat = self.flat(0, self.layout(tensor.id), spread)
        self.stored[storage] = StoredCopy(self.calls.empty(flat.shape, flat.dtype).storage, spread)

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

    def settle(self, tensor: int, layout: Layout, spread: Spread) -> None:
        """Bring what an op has made to how it is stored."""
        stored = self.spread(tensor, self.plan.tensors[tensor], self.graph.tensors[tensor].name)
        elements = prod(self.graph.tensors[tensor].shape)
        found = redistribute(self.calls, layout.storage, layout.dtype, elements, spread, stored)
        self.stored[self.graph.tensors[tensor].storage] = StoredCopy(found, stored)

    def local(self, layout: Layout, storage: int, spread: Spread) -> Layout | None:
        """A tensor of the graph in the worker's storage; None if the spread divides what is no factor of it."""
        found = local_part(layout, chunks(spread, self.mesh, self.place))
        return None if found is None else found._replace(storage=storage)

    def flat(self, storage: int, layout: Layout, spread: Spread) -> Layout:
        """All that the worker has of a storage, as a flat tensor."""
        elements = local_elements(layout.elements, chunks(spread, self.mesh, self.place))
        return dense(storage, (elements,), layout.dtype)

    def covers(self, layout: Layout) -> bool:
        """Whether a tensor is all of its memory."""
        return layout.dense and layout.offset == 0 and layout.bytes == self.size(layout.storage, layout.dtype)

    def _serves_all(self, spread: Spread) -> Iterator[bool]:
        if any(isinstance(level, Cut) for level in spread):
            for place in places(self.mesh):
                yield all(last > first for first, last in chunks(spread, self.mesh, place).values())
