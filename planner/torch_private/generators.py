"""PyTorch's default generators, one for each device."""

from __future__ import annotations

import torch


def default_generator(device: str) -> torch.Generator:
    """The generator that ops on a device draw from unless they are given another.

    Args:
        device: the type of device, of which the current one is meant.
    """
    if device == "cpu":
        return torch.default_generator
    torch.cuda.init()  # type: ignore[no-untyped-call]  # makes them
    generator: torch.Generator = torch.cuda.default_generators[torch.cuda.current_device()]
    return generator
