"""Saved tensors as views of a storage that is offloaded, dropped or kept."""

from __future__ import annotations

from typing import Protocol

import torch

from planner import torch_private as private
from planner.errors import StowageError


class SavedStorage(Protocol):
    """A storage that autograd holds."""

    def storage(self) -> torch.UntypedStorage:
        """The storage, for what is computed from now on."""


class StorageView:
    """A saved tensor whose storage is offloaded or dropped.

    Args:
        held: its storage.
        tensor: the tensor, whose layout is kept.
    """

    def __init__(self, held: SavedStorage, tensor: torch.Tensor) -> None:
        self._held = held
        self._dtype, self._device = tensor.dtype, tensor.device
        self._layout = tensor.storage_offset(), tensor.shape, tensor.stride()

    def unpacked(self) -> torch.Tensor:
        """The tensor."""
        return self._view(self._held.storage())

    def is_equal(self, storage: torch.UntypedStorage) -> bool:
        """Whether another storage has the bits of this tensor."""
        ours, theirs = (one.contiguous().view(-1).view(torch.uint8) for one in (self.unpacked(), self._view(storage)))
        return torch.equal(ours, theirs)

    def _view(self, storage: torch.UntypedStorage) -> torch.Tensor:
        return torch.empty(0, dtype=self._dtype, device=self._device).set_(storage, *self._layout)


class KeptTensor:
    """A saved tensor that stays on the device.

    Args:
        tensor: the tensor.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor, self._version = tensor, private.version(tensor)

    def storage(self) -> torch.UntypedStorage:
        """The storage that it is in."""
        return self.unpacked().untyped_storage()

    def unpacked(self) -> torch.Tensor:
        """The tensor.

        Raises:
            StowageError: it was changed in place after it was saved; PyTorch does not look at this under hooks.
        """
        if private.version(self._tensor) != self._version:
            raise StowageError(
                f"a tensor of shape {tuple(self._tensor.shape)} that the backward pass needs was changed in place "
                "after it was saved: change a clone of it"
            )
        return self._tensor
