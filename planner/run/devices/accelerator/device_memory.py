"""What is taken of the memory of a device, by everyone."""

from __future__ import annotations

from typing import NamedTuple


class DeviceMemory(NamedTuple):
    """The memory of a device that is not the host's, at a moment, in bytes.

    Args:
        in_use: by all programs, with what the driver keeps for them.
        held: by PyTorch's allocator for this process, in use or not.
        before: what it held before the run's memory was allocated.
    """

    in_use: int
    held: int
    before: int
