"""The live step, brought to the device that its plan runs on, so that eager PyTorch makes the same step there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from planner.step import Step, rebuilt, tensors_of
from planner.torch_private import storage_identity

#: The optimizer's state that PyTorch has on the host, whatever the device.
_ON_HOST = "step"


@contextmanager
def brought_to(device: str, step: Step, batch: Any) -> Iterator[Any]:
    """Have what a live step holds on a device during the block, and afterwards where it was, with its new numbers.

    Args:
        device: the type of device.
        step: its tensors keep their identity.
        batch: is copied there.

    Yields:
        The batch on the device.
    """
    leaves = tensors_of(batch)
    if leaves and all(leaf.device.type == device for leaf in leaves.values()):
        yield batch
        return
    model = step.materialize().model
    held = [one.tensor for one in step.persistent_tensors(model, step.reach(model))]
    others = (*_optimizer_states(step), *step.scaler_tensors().values())
    homes = [(one, one.data) for one in (*held, *others) if one.device.type != device]
    memory = _BroughtMemory(device)
    try:
        for one, home in homes:
            one.data = memory.of(home)
        yield rebuilt(batch, {name: leaf.to(device) for name, leaf in leaves.items()})
    finally:
        memory.take_back()
        for one, home in homes:
            one.grad = None
            one.data = home
        _take_back_new_states(step, [home for _, home in homes])


class _BroughtMemory:
    """Memory on a device, storage by storage, so that tensors that share it still do, with the same strides."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._memory: dict[int, tuple[Tensor, Tensor]] = {}

    def of(self, home: Tensor) -> Tensor:
        """A tensor there, at the place of one that is elsewhere."""
        storage = home.untyped_storage()
        key = storage_identity(storage)
        if key not in self._memory:
            flat = torch.empty(0, dtype=torch.uint8, device=home.device).set_(storage)
            self._memory[key] = flat, flat.to(self._device)
        there = self._memory[key][1]
        there = there[: len(there) // home.itemsize * home.itemsize].view(home.dtype)
        return there.as_strided(home.shape, home.stride(), home.storage_offset())

    def take_back(self) -> None:
        """Copy what has become of it to where it was."""
        for home, there in self._memory.values():
            home.copy_(there)


def _take_back_new_states(step: Step, homes: list[Tensor]) -> None:
    """Take back what the optimizer has made anew, such as momentum."""
    optimizer = step.torch_optimizer
    if optimizer is None or not homes:
        return
    for state in optimizer.state.values():
        for name, value in state.items():
            if isinstance(value, Tensor) and name != _ON_HOST and value.device != homes[0].device:
                state[name] = value.to(homes[0].device)


def _optimizer_states(step: Step) -> list[torch.Tensor]:
    optimizer = step.torch_optimizer
    states = () if optimizer is None else optimizer.state.values()
    return [value for state in states for name, value in state.items()
            if isinstance(value, Tensor) and name != _ON_HOST]  # fmt: skip
