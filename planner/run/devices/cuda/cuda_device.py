"""A CUDA GPU as a device."""

from __future__ import annotations

from collections.abc import Callable

import torch

from planner.errors import StowageError
from planner.machine import Link
from planner.program import backend_of
from planner.run.devices.accelerator.accelerator_device import AcceleratorDevice
from planner.run.devices.cuda.cuda_driver import CudaDriver
from planner.run.devices.cuda.philox_states import PhiloxStates
from planner.torch_private import default_generator


class CudaDevice(AcceleratorDevice):
    """Memory of the current CUDA GPU of exactly `arena_bytes`, pinned memory of exactly `host_bytes`, and four streams.

    Args:
        arena_bytes, host_bytes: sizes of the two slabs.
        link: None; a GPU has its own.
        check_cancelled: called periodically while memory is pinned and while the streams are waited for; may raise to
            abandon that.

    Raises:
        StowageError: there is no GPU, not enough memory, or a link to imitate.
    """

    name = "cuda"
    rng_states = PhiloxStates

    def __init__(
        self,
        arena_bytes: int,
        host_bytes: int,
        link: Link | None = None,
        check_cancelled: Callable[[], object] = lambda: None,
    ) -> None:
        missing = backend_of(self.name).missing()
        if missing:
            raise StowageError(f"steps cannot be run on a CUDA GPU here: {missing}")
        if link is not None:
            raise StowageError("a GPU copies at the pace of its own link: leave link_bandwidth out")
        super().__init__(CudaDriver(), arena_bytes, host_bytes, check_cancelled)

    @property
    def default_generator(self) -> torch.Generator:
        """The GPU's own generator, which random ops of eager PyTorch draw from."""
        return default_generator(self.name)

    @staticmethod
    def generator() -> torch.Generator:
        """Make a generator that ops on the current GPU may draw from."""
        return torch.Generator(torch.device("cuda", torch.cuda.current_device()))
