"""The live step, brought to the device that its plan runs on, so that eager PyTorch makes the same step there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from planner.step import Step, rebuilt, tensors_of

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
    homes = [(one, one.data) for one in (*held, *_optimizer_states(step)) if one.device.type != device]
    try:
        for one, home in homes:
            one.data = home.to(device)
        yield rebuilt(batch, {name: leaf.to(device) for name, leaf in leaves.items()})
    finally:
        _take_back(step, homes)


def _take_back(step: Step, homes: list[tuple[Tensor, Tensor]]) -> None:
    for one, home in homes:
        home.copy_(one.data)
        one.grad = None
        one.data = home
    optimizer = step.torch_optimizer
    if optimizer is None or not homes:
        return
    home_device = homes[0][1].device
    for state in optimizer.state.values():  # what the step has made anew, such as momentum
        for name, value in state.items():
            if isinstance(value, Tensor) and name != _ON_HOST and value.device != home_device:
                state[name] = value.to(home_device)


def _optimizer_states(step: Step) -> list[torch.Tensor]:
    optimizer = step.torch_optimizer
    states = () if optimizer is None else optimizer.state.values()
    return [value for state in states for name, value in state.items()
            if isinstance(value, Tensor) and name != _ON_HOST]  # fmt: skip
