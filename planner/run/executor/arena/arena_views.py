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

    def tensor(self, tensor: int, residency: Residency | None) -> Tensor:
        """A tensor of the graph during a residency of its storage on the device."""
        tensor_info = self._graph.tensors[tensor]
        if residency is None:
            return self._empty(tensor_info, self._arena)
        key = (tensor, residency.offset)
        if key not in self._views:
            self._views[key], top = self._view(tensor_info, self._arena, residency.offset)
            self.top_bytes = max(self.top_bytes, top)
        return self._views[key]

    def host_tensor(self, tensor: int, residency: HostResidency) -> Tensor:
        """A tensor of the graph in the host slab."""
        return self._view(self._graph.tensors[tensor], self._host, residency.offset)[0]

    def device_bytes(self, residency: Residency) -> Tensor:
        """The bytes of a residency on the device, `[n]` of uint8."""
        size = self._graph.storages[residency.storage].bytes
        self.top_bytes = max(self.top_bytes, residency.offset + size)
        return self._slice(self._arena, residency.storage, residency.offset)

    def host_bytes(self, residency: HostResidency) -> Tensor:
        """The bytes of a residency in the host slab, `[n]` of uint8."""
        return self._slice(self._host, residency.storage, residency.offset)

    @property
    def slabs(self) -> tuple[tuple[int, int], ...]:
        """The first address of the arena and of the host slab, and the one after the last."""
        return tuple((slab.data_ptr(), slab.data_ptr() + len(slab)) for slab in (self._arena, self._host))

    def out_ends(self, entry: int) -> tuple[Tensor, Tensor]:
        """Target and source of a swap-out, both `[n]` of uint8."""
        copy = self.index.plan.swap_outs[entry]
        residency = self.index.residency_until(copy.storage, copy.release)
        place = self.index.host_residency(copy.storage, copy.ready, copy.release)
        return self.host_bytes(self._found(place, copy.storage)), self.device_bytes(
            self._found(residency, copy.storage)
        )

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
        storage_info = self._graph.storages[storage]
        if offset < 0 or offset + storage_info.bytes > len(slab):
            raise _outside(storage_info.name)
        return slab[offset : offset + storage_info.bytes]

    def _view(self, tensor_info: GraphTensor, slab: Tensor, offset: int) -> tuple[Tensor, int]:
        """A view of a slab, and the end of its last byte."""
        storage = self._graph.storages[tensor_info.storage]
        dtype: torch.dtype = getattr(torch, tensor_info.dtype)
        reach = (
            1 + sum((n - 1) * step for n, step in zip(tensor_info.shape, tensor_info.strides, strict=True))
        ) * dtype.itemsize
        first = tensor_info.offset * dtype.itemsize
        if 0 in tensor_info.shape:
            return self._empty(tensor_info, slab), 0
        if offset < 0 or offset % dtype.itemsize or first + reach > storage.bytes or offset + storage.bytes > len(slab):
            raise _outside(storage.name)
        view = torch.empty(0, dtype=dtype, device=slab.device)
        # a view of the slab's storage, because the size of the slab need not be a multiple of the element size
        view.set_(
            slab.untyped_storage(),
            offset // dtype.itemsize + tensor_info.offset,
            tensor_info.shape,
            tensor_info.strides,
        )
        return view, offset + first + reach

    def _empty(self, tensor_info: GraphTensor, slab: Tensor) -> Tensor:
        if self._graph.storages[tensor_info.storage].bytes and 0 not in tensor_info.shape:
            raise StowageError(f"the plan has {tensor_info.name} read where it is not on the device; plan again")
        return torch.empty_strided(
            tensor_info.shape, tensor_info.strides, dtype=getattr(torch, tensor_info.dtype), device=slab.device
        )


def _outside(name: str) -> StowageError:
    return StowageError(f"the plan puts {name} outside of the memory it asks for; plan again")
