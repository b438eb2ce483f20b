"""Where a worker updates tensors in place: where they are stored, or in a copy that is written back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.graph import Op
from planner.partition.strategy import Partial, Split, State, Unread
from planner.partition.workers.events.worker_events import dense, refuse
from planner.partition.workers.tensors.fetched_tensors import FetchedTensors
from planner.partition.workers.tensors.part_updates import write_part
from planner.partition.workers.tensors.redistribute import redistribute
from planner.partition.workers.tensors.spreads import chunks, local_part, splits_of
from planner.partition.workers.tensors.stored_tensors import StoredCopy, StoredTensors
from planner.program import Layout


class UpdatedTensors:
    """Finds where one worker's ops update tensors in place.

    Args:
        tensors: where the worker has them.
        fetched: brings it what an op reads beside.
    """

    def __init__(self, tensors: StoredTensors, fetched: FetchedTensors) -> None:
        """Begin with nothing updated."""
        self._tensors, self._fetched = tensors, fetched
        self._graph, self._calls, self._mesh = tensors.graph, tensors.calls, tensors.mesh

    def updated(
        self, op: Op, wants: Mapping[int, tuple[State, ...]], gives: Mapping[int, tuple[State, ...]]
    ) -> dict[int, StoredCopy]:
        """By storage that an op updates in place, where it does so: a copy if the op needs it spread otherwise."""
        found: dict[int, StoredCopy] = {}
        for tensor in op.outputs:
            storage = self._graph.tensors[tensor].storage
            layout = self._tensors.layout(tensor)
            if storage not in self._tensors.stored and not self._tensors.covers(layout):
                self._tensors.begin(storage)
            if storage not in self._tensors.stored or storage in found:
                continue
            held = self._tensors.stored[storage]
            reads = [
                read for read, states in wants.items()
                if self._graph.tensors[read].storage == storage and not any(isinstance(want, Unread) for want in states)
            ]  # fmt: skip
            if not self._tensors.covers(layout):
                read = any(self._tensors.layout(read) == layout for read in reads)
                found[storage] = self._part_to_update(op, tensor, gives[tensor], held, read)
                continue
            spread = self._tensors.spread(tensor, gives[tensor], op.name)
            if held.spread == spread:
                found[storage] = held
            elif reads:
                copy = redistribute(self._calls, held.storage, layout.dtype, layout.elements, held.spread, spread)
                if copy == held.storage or self._fetched.shares(copy):
                    copy = self._calls.clone(self._tensors.flat(copy, layout, spread)).storage
                found[storage] = StoredCopy(copy, spread)
            else:
                local = self._tensors.flat(0, layout, spread)
                found[storage] = StoredCopy(self._calls.empty(local.shape, local.dtype).storage, spread)
        return found

    def to_update(self, op: Op, tensor: int, states: Sequence[State], updated: dict[int, StoredCopy]) -> Layout:
        """A tensor that an op reads and writes in place, or writes."""
        name, layout = self._graph.tensors[tensor].name, self._tensors.layout(tensor)
        found = updated[layout.storage]
        if found.part is not None:
            return self._rows_to_update(op, tensor, states, found)
        unread = any(isinstance(state, Unread) for state in states)
        if not unread and self._tensors.spread(tensor, states, op.name) != found.spread:
            raise refuse(op.name, f"it reads {name} in one spread and writes it in another")
        local = self._tensors.local(layout, found.storage, found.spread)
        if local is None:
            raise refuse(op.name, f"it writes into a part of {name} across chunks")
        return local

    def write_back(self, storage: int, copy: StoredCopy) -> None:
        """Bring what was updated in a copy to where it is stored."""
        held = self._tensors.stored[storage]
        if copy.storage == held.storage:
            return
        if copy.part is not None:
            write_part(self._calls, copy.storage, copy.spread, copy.part, held.storage, held.spread)
            return
        tensor = next(tensor for tensor in self._graph.tensors if tensor.storage == storage and tensor.base < 0)
        layout = self._tensors.layout(tensor.id)
        found = redistribute(self._calls, copy.storage, layout.dtype, layout.elements, copy.spread, held.spread)
        self._calls.copy(
            self._tensors.flat(found, layout, held.spread), self._tensors.flat(held.storage, layout, held.spread)
        )

    def _part_to_update(
        self, op: Op, tensor: int, states: tuple[State, ...], held: StoredCopy, read: bool
    ) -> StoredCopy:  # fmt: skip
        """Where an op updates a part of a storage: in it, or in rows of its own if the op needs it spread otherwise."""
        layout = self._tensors.layout(tensor)
        partial = any(isinstance(state, Partial) for state in states)
        splits = tuple(state if isinstance(state, Split) else None for state in states)
        if splits_of(layout, held.spread) == splits and not partial:
            return held
        rows = dense(0, layout.shape, layout.dtype)
        spread = self._tensors.spread_in(rows, states, op.name)
        local = local_part(rows, chunks(spread, self._mesh, self._calls.place))
        assert local is not None
        copy = self._calls.empty(local.shape, layout.dtype)
        if read:
            self._calls.copy(self._fetched.fetch(tensor, states, op.name), copy)
        return StoredCopy(copy.storage, spread, layout)

    def _rows_to_update(self, op: Op, tensor: int, states: Sequence[State], found: StoredCopy) -> Layout:
        """A part of a storage that an op updates in rows of its own, or another part of it, which it only reads."""
        layout = self._tensors.layout(tensor)
        rows = dense(found.storage, layout.shape, layout.dtype)
        if layout != found.part:
            if tensor in op.outputs:
                raise refuse(op.name, f"it writes into several parts of {self._graph.tensors[tensor].name}")
            return self._fetched.fetch(tensor, states, op.name)
        unread = any(isinstance(state, Unread) for state in states)
        if not unread and self._tensors.spread_in(rows, states, op.name) != found.spread:
            raise refuse(op.name, f"it reads {self._graph.tensors[tensor].name} in one spread and writes it in another")
        local = local_part(rows, chunks(found.spread, self._mesh, self._calls.place))
        assert local is not None
        return local
