"""Saved tensors: views of a storage that is offloaded, and those that are kept."""

from __future__ import annotations

import torch

from planner import torch_private as private
from planner.apply.hooks.offloaded_storage import OffloadedStorage
from planner.errors import StowageError


class StorageView:
    """A saved tensor whose storage is offloaded.

    Args:
        held: its storage.
        tensor: the tensor, whose layout is kept.
    """

    def __init__(self, held: OffloadedStorage, tensor: torch.Tensor) -> None:
        self._held = held
        self._dtype, self._device = tensor.dtype, tensor.device
        self._layout = tensor.storage_offset(), tensor.shape, tensor.stride()

    def unpacked(self) -> torch.Tensor:
        """The tensor."""
        return torch.empty(0, dtype=self._dtype, device=self._device).set_(self._held.storage(), *self._layout)


class KeptTensor:
    """A saved tensor that stays on the device.

    Args:
        tensor: the tensor.
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor, self._version = tensor, private.version(tensor)

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
