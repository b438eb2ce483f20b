"""Device memory that a process takes beside the arena."""

from __future__ import annotations

from dataclasses import dataclass

from planner.errors import StowageError
from planner.machine.machine_types import Device, Machine
from planner.units import format_bytes


@dataclass(frozen=True, slots=True)
class Reserve:
    """A part of the device's memory that no plan may use.

    Args:
        name: what takes it.
        bytes: how much.
        source: where the figure comes from.
    """

    name: str
    bytes: int
    source: str


def reserve_of(device: Device) -> tuple[Reserve, ...]:
    """What a device keeps beside the arena; nothing is measured."""
    if device.kind != "cuda":
        return ()
    return (
        Reserve(
            "CUDA context and kernels", 512 * 2**20,
            "PyTorch's maintainers name 300 to 400 MB with lazy loading (pytorch issues 107667, 109888); rounded up",
        ),
        Reserve("cuBLAS workspace", 32 * 2**20, "NVIDIA's recommendation for Hopper, the largest of all architectures"),
        Reserve("fragmentation", 0, "the arena is one allocation, in which a plan fixes every offset"),
    )  # fmt: skip


def usable_bytes(machine: Machine) -> int:
    """Bytes of a machine's device memory that a plan may use.

    Raises:
        StowageError: the reserve takes all of it.
    """
    device = machine.device
    reserve = sum(part.bytes for part in reserve_of(device))
    if device.memory_bytes <= reserve:
        raise StowageError(
            f"{machine.name} has {format_bytes(device.memory_bytes)} of memory, of which {format_bytes(reserve)} are "
            "reserved beside the plan; choose a machine with more"
        )
    return device.memory_bytes - reserve
