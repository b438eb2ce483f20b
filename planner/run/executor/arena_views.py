"""The arena views: every tensor of a plan at its place in the slabs, slot by slot, as arguments for kernels."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor

from planner.errors import StowageError
from planner.graph import Tensor as GraphTensor
from planner.plan import HostResidency, PlanIndex, Residency

_Place = TypeVar("_Place", Residency, HostResidency)


class ArenaViews:
    """Views of the arena and the host slab.

    Args:
        index: of the plan.
        arena, host: `[bytes]` of uint8.
    """

    def __init__(self, index: PlanIndex, arena: Tensor, host: Tensor) -> None:
        self.index, self._graph, self._arena, self._host = index, index.graph, arena, host
        self._views: dict[tuple[int, int], Tensor] = {}
        self.top_bytes = 0  # the end of the highest byte of the arena that was ever bound

    def tensor(self, tensor: int, stay: Residency | None) -> Tensor:
        """A tensor of the graph during a residency of its storage on the device."""
        facts = self._graph.tensors[tensor]
        if stay is None:
            return self._empty(facts, self._arena)
        key = (tensor, stay.offset)
        if key not in self._views:
            self._views[key], top = self._view(facts, self._arena, stay.offset)
            self.top_bytes = max(self.top_bytes, top)
        return self._views[key]

    def host_tensor(self, tensor: int, stay: HostResidency) -> Tensor:
        """A tensor of the graph in the host slab."""
        return self._view(self._graph.tensors[tensor], self._host, stay.offset)[0]

    def device_bytes(self, stay: Residency) -> Tensor:
        """The bytes of a residency on the device, `[n]` of uint8."""
        size = self._graph.storages[stay.storage].bytes
        self.top_bytes = max(self.top_bytes, stay.offset + size)
        return self._slice(self._arena, stay.storage, stay.offset)

    def host_bytes(self, stay: HostResidency) -> Tensor:
        """The bytes of a residency in the host slab, `[n]` of uint8."""
        return self._slice(self._host, stay.storage, stay.offset)

    @property
    def slabs(self) -> tuple[tuple[int, int], ...]:
        """The first address of the arena and of the host slab, and the one after the last."""
        return tuple((slab.data_ptr(), slab.data_ptr() + len(slab)) for slab in (self._arena, self._host))

    def out_ends(self, entry: int) -> tuple[Tensor, Tensor]:
        """Target and source of a swap-out, both `[n]` of uint8."""
        copy = self.index.plan.swap_outs[entry]
        stay = self.index.residency_until(copy.storage, copy.release)
        place = self.index.host_residency(copy.storage, copy.ready, copy.release)
        return self.host_bytes(self._found(place, copy.storage)), self.device_bytes(self._found(stay, copy.storage))

    def in_ends(self, entry: int) -> tuple[Tensor, Tensor]:
        """Target and source of a swap-in, both `[n]` of uint8."""
        copy = self.index.plan.swap_ins[entry]
        landing = self.index.residency_from(copy.storage, copy.start)
        origin = self.index.host_residency(copy.storage, copy.start - 1, copy.use)
        return self.device_bytes(self._found(landing, copy.storage)), self.host_bytes(self._found(origin, copy.storage))

    def _found(self, place: _Place | None, storage: int) -> _Place:
        if place is None:
            name = self._graph.storages[storage].name
            raise StowageError(f"the plan copies {name} but has no place for one end of the copy; plan again")
        return place

    def _slice(self, slab: Tensor, storage: int, offset: int) -> Tensor:
        facts = self._graph.storages[storage]
        if offset < 0 or offset + facts.bytes > len(slab):
            raise _outside(facts.name)
        return slab[offset : offset + facts.bytes]

    def _view(self, facts: GraphTensor, slab: Tensor, offset: int) -> tuple[Tensor, int]:
        """A view of a slab, and the end of its last byte."""
        storage = self._graph.storages[facts.storage]
        dtype: torch.dtype = getattr(torch, facts.dtype)
        reach = (1 + sum((n - 1) * step for n, step in zip(facts.shape, facts.strides, strict=True))) * dtype.itemsize
        first = facts.offset * dtype.itemsize
        if 0 in facts.shape:
            return self._empty(facts, slab), 0
        if offset < 0 or offset % dtype.itemsize or first + reach > storage.bytes or offset + storage.bytes > len(slab):
            raise _outside(storage.name)
        view = torch.empty(0, dtype=dtype, device=slab.device)
        # a view of the slab's storage, because the size of the slab need not be a multiple of the element size
        view.set_(slab.untyped_storage(), offset // dtype.itemsize + facts.offset, facts.shape, facts.strides)
        return view, offset + first + reach

    def _empty(self, facts: GraphTensor, slab: Tensor) -> Tensor:
        if self._graph.storages[facts.storage].bytes and 0 not in facts.shape:
            raise StowageError(f"the plan has {facts.name} read where it is not on the device; plan again")
        return torch.empty_strided(facts.shape, facts.strides, dtype=getattr(torch, facts.dtype), device=slab.device)


def _outside(name: str) -> StowageError:
    return StowageError(f"the plan puts {name} outside of the memory it asks for; plan again")
