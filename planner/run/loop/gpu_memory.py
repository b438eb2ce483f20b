"""What the memory in use on a GPU consists of, beside the arena that a plan predicts."""

from __future__ import annotations

from dataclasses import dataclass

from planner.run.devices.accelerator.device_memory import DeviceMemory


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """The memory in use on the whole GPU when it was most, in bytes.

    Args:
        arena: of the plan, as predicted.
        temporaries: the most temporary memory of an op.
        libraries: what libraries keep.
        rounding: what else PyTorch's allocator holds since the run began: its segments are larger than what is in them,
            and it keeps some for later.
        others: the driver, other programs, and what this one took before the run.
    """

    arena: int
    temporaries: int
    libraries: int
    rounding: int
    others: int

    @property
    def in_use(self) -> int:
        """The total."""
        return self.arena + self.temporaries + self.libraries + self.rounding + self.others


def gpu_memory(most: DeviceMemory, arena: int, temporaries: int, libraries: int) -> GpuMemory:
    """Tell apart what was in use on a GPU.

    Args:
        most: what was taken when it was most.
        arena: bytes of the plan's.
        temporaries, libraries: bytes as measured in the first step.
    """
    beside = max(0, most.held - most.before - arena)
    libraries = min(libraries, beside)
    temporaries = min(temporaries, beside - libraries)  # the allocator may have given back what held them
    rounding = beside - libraries - temporaries
    others = max(0, most.in_use - arena - beside)
    return GpuMemory(arena, temporaries, libraries, rounding, others)
