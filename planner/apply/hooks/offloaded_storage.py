"""Storages that are offloaded to the host."""

from __future__ import annotations

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from planner import torch_private as private
from planner.apply.hooks.copies import Copies, HostBuffer, copies_for


class BufferPool:
    """Host buffers, which are used again in every step, by device and size."""

    def __init__(self) -> None:
        self._free: dict[tuple[torch.device, int], list[HostBuffer]] = {}
        self._copies: dict[torch.device, Copies] = {}

    def copies(self, device: torch.device) -> Copies:
        """The copies of a device."""
        if device not in self._copies:
            self._copies[device] = copies_for(device)
        return self._copies[device]

    def take(self, device: torch.device, size: int) -> HostBuffer:
        """A buffer that nothing else uses."""
        free = self._free.setdefault((device, size), [])
        return free.pop() if free else HostBuffer(size, pinned=self.copies(device).pinned)

    def give_back(self, device: torch.device, buffer: HostBuffer) -> None:
        """Return a buffer."""
        self._free.setdefault((device, len(buffer.bytes)), []).append(buffer)

    def clear(self) -> None:
        """Free the buffers that nothing uses."""
        self._free.clear()


class OffloadedStorage:
    """A storage that is offloaded: all saved tensors in it share one copy.

    Args:
        tensor: a tensor in it, whose contents are copied at once.
        pool: where its buffer is from.
    """

    def __init__(self, tensor: torch.Tensor, pool: BufferPool) -> None:
        storage, device = tensor.untyped_storage(), tensor.device
        self._version, self._device = private.version(tensor), device
        self._pool, self._copies = pool, pool.copies(device)
        self._identity = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
        self._bytes: torch.Tensor | None = torch.empty(0, dtype=torch.uint8, device=device)
        self._bytes.set_(storage)
        self._buffer = pool.take(device, storage.nbytes())
        self._copies.out(self._bytes, self._buffer)

    def is_of(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is in this storage, with the contents that were copied."""
        if self._identity.expired():  # type: ignore[no-untyped-call]
            return False
        same = self._identity.cdata == private.storage_identity(tensor.untyped_storage())
        return bool(same) and private.version(tensor) == self._version

    def release(self) -> None:
        """Free its memory on the device."""
        if self._bytes is not None:
            self._copies.wait(self._buffer)
            self._bytes = None

    def fetch(self) -> torch.Tensor:
        """Begin to copy it back unless it is there; returns its bytes."""
        if self._bytes is None:
            self._bytes = self._copies.back(self._buffer)
        return self._bytes

    def storage(self) -> torch.UntypedStorage:
        """The storage, or a copy, for what is computed from now on."""
        found = self.fetch()
        self._copies.wait(self._buffer)
        return found.untyped_storage()

    def __del__(self) -> None:
        self.release()
        self._pool.give_back(self._device, self._buffer)
