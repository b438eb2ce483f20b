"""Storages that are dropped, and made again by the kernels that made them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any

import torch

from planner.apply.hooks.packed_tensors import SavedStorage, StorageView
from planner.apply.schedule.recomputation import Recomputation
from planner.errors import StowageError
from planner.program import Program, TensorRef


class KernelReplay:
    """Runs ops of the captured step again, on what autograd holds.

    Args:
        found: what can be made again.
        state: by storage, returns the live parameter or buffer that is in it.
    """

    def __init__(self, found: Recomputation, state: Mapping[int, Callable[[], torch.Tensor]]) -> None:
        self.found, self.state = found, state
        self._graph = found.producers.graph
        self._program: Program = self._graph.program

    def make(self, storage: int, held: Mapping[int, SavedStorage]) -> dict[int, torch.UntypedStorage]:
        """Make a storage; returns all storages that were made for it.

        Args:
            storage: the storage.
            held: by storage, what autograd holds.

        Raises:
            StowageError: a kernel lays out its result in another way than when the step was captured.
        """

        def available(one: int) -> bool:
            there = held.get(one) if one in self.found.usable or one in self.found.made else None
            return one in self.found.constant or (there is not None and not is_dropped(there))

        found = self.found.producers.ops(storage, available)
        assert found is not None, "what is made again is made of what is held with it"
        made = {one: self._source(one, held) for one in found[1]}
        ours = set[int]()
        with torch.no_grad(), torch.autocast(self._graph.device, enabled=False):
            for op in found[0]:
                self._run(op, made)
                ours.update(self._graph.writes[op])
        return {one: made[one] for one in ours if one in made}

    def name_of(self, storage: int) -> str:
        """The name of a storage."""
        return self._graph.storages[storage].name

    def _source(self, storage: int, held: Mapping[int, SavedStorage]) -> torch.UntypedStorage:
        there = held.get(storage)
        return self.state[storage]().untyped_storage() if there is None else there.storage()

    def _run(self, op: int, made: MutableMapping[int, torch.UntypedStorage]) -> None:
        call = self._program.calls[op]
        args = [self._argument(one, made) for one in call.args]
        result = call.target(*args, **{name: self._argument(one, made) for name, one in call.kwargs.items()})
        results = result if isinstance(result, list | tuple) else (result,)
        for tensor, value in zip(call.results, results, strict=True):
            if tensor >= 0:
                known = self._graph.tensors[tensor]
                layout = tuple(value.shape), value.stride(), value.storage_offset()
                if layout != (known.shape, known.strides, known.offset):
                    raise StowageError(
                        f"{self._graph.ops[op].name} lays out its result in another way than when the step was "
                        "captured: capture the step with the settings that it is run with"
                    )
                made[known.storage] = value.untyped_storage()

    def _argument(self, value: Any, made: Mapping[int, torch.UntypedStorage]) -> Any:
        if isinstance(value, TensorRef):
            known = self._graph.tensors[value.tensor]
            storage = made[known.storage]
            empty = torch.empty(0, dtype=getattr(torch, known.dtype), device=storage.device)
            return empty.set_(storage, known.offset, known.shape, known.strides)
        if isinstance(value, list | tuple):
            return type(value)(self._argument(one, made) for one in value)
        return value


class DroppedStorage:
    """A storage that is made again when autograd uses it.

    Args:
        storage: the storage of the graph.
        replay: makes it.
        held: by storage, what autograd holds of the step.
        sources: what it is made of, which stays until then.
        expected: a tensor in it that is offloaded, with which what is made is compared; None for no comparison.
    """

    def __init__(
        self,
        storage: int,
        replay: KernelReplay,
        held: Mapping[int, SavedStorage],
        sources: Iterable[SavedStorage],
        expected: StorageView | None,
    ) -> None:
        self._storage, self._replay, self._held, self._sources = storage, replay, held, tuple(sources)
        self._expected = expected
        self._made: torch.UntypedStorage | None = None

    @property
    def dropped(self) -> bool:
        """Whether it is not there."""
        return self._made is None

    def storage(self) -> torch.UntypedStorage:
        """The storage; what is made beside it is kept for those that autograd still holds.

        Raises:
            StowageError: other values are made than were saved.
        """
        if self._made is None:
            for storage, made in self._replay.make(self._storage, self._held).items():
                other = self._held.get(storage)
                if isinstance(other, DroppedStorage) and other.dropped:
                    other.keep(made)
        assert self._made is not None
        return self._made

    def keep(self, made: torch.UntypedStorage) -> None:
        """Take what was made.

        Raises:
            StowageError: it has other values than were saved.
        """
        if self._expected is not None and not self._expected.is_equal(made):
            name = self._replay.name_of(self._storage)
            raise StowageError(
                f"{name} has other values when it is computed again than in the step that runs, which is not the "
                "captured one: run the captured step under planner.apply"
            )
        self._made, self._sources, self._expected = made, (), None


def is_dropped(held: SavedStorage) -> bool:
    """Whether a storage would have to be made."""
    return isinstance(held, DroppedStorage) and held.dropped
