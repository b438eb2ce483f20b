"""Fake tensors on the device that a step is to run on, of tensors on another: the host, or none."""

from __future__ import annotations

import torch

from planner import torch_private as private


class FakeDevice:
    """A device, with a fake counterpart of each storage, so that tensors that share memory still share it.

    Args:
        name: the type of device.
        fake: the mode of the fake tensors.
    """

    def __init__(self, name: str, fake: private.FakeTensorMode) -> None:
        self.name, self.fake = name, fake
        self._memory: dict[int, tuple[torch.Tensor, torch.UntypedStorage]] = {}  # kept: identities are reused

    def holds(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is there already; one on the meta device is nowhere."""
        return private.device_of(tensor).type == self.name

    def moved(self, tensor: torch.Tensor) -> torch.Tensor:
        """A fake tensor there, with the layout and the memory of a tensor that is elsewhere."""
        storage = tensor.untyped_storage()
        identity = private.storage_identity(storage)
        with self.fake, torch.no_grad():
            if identity not in self._memory:
                made = torch.empty(storage.nbytes(), dtype=torch.uint8, device=self.name)
                self._memory[identity] = made, storage
            whole = self._memory[identity][0]
            whole = whole[: len(whole) // tensor.itemsize * tensor.itemsize].view(tensor.dtype)
            place = whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).detach()
            if isinstance(tensor, torch.nn.Parameter):
                return torch.nn.Parameter(place, requires_grad=tensor.requires_grad)
            return place.requires_grad_(tensor.requires_grad)
