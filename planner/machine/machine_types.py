"""Machines: hosts with devices, their memory and speed, and the links between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Link:
    """A path for copies.

    Args:
        bandwidth: bytes per second of one direction while the other is idle.
        duplex_bandwidth: bytes per second of both directions together when both are busy.
        latency: seconds that every copy takes in addition.
    """

    bandwidth: float
    duplex_bandwidth: float
    latency: float = 0.0


@dataclass(frozen=True)
class Device:
    """One processor with its own memory.

    Args:
        name: human-readable name (`"NVIDIA V100 SXM2 16 GB"`).
        kind: `"cuda"` or `"cpu"`.
        memory_bytes: size of its memory.
        memory_bandwidth: bytes per second.
        flops: peak FLOP/s by dtype (`"float32"`, `"bfloat16"`).
        efficiency: attainable share of the peak by op class; `machine/roofline.py` says where the figures come from.
        launch_seconds: overhead of every op besides its work: its launch, and filling and draining the device.
        alignment: bytes; every storage starts at a multiple of it, because equal bits require equal alignment.
    """

    name: str
    kind: str
    memory_bytes: int
    memory_bandwidth: float
    flops: Mapping[str, float]
    efficiency: Mapping[str, float] = field(default_factory=dict)
    launch_seconds: float = 5e-6
    alignment: int = 512


@dataclass(frozen=True)
class Machine:
    """Devices of one kind in one host, or in several hosts that are all alike.

    Args:
        name: the preset's name (`"v100-16gb"`), or `"auto"` / `"cpu"` for the attached machine.
        devices: of one host, at least one.
        host_link: between a device and host memory.
        peer_link: between two devices of a host, if there are several.
        host_memory_bytes: memory that a host can pin.
        hosts: how many there are.
        network_link: between a host and all others, shared by the host's devices; None if it is not known.
        communicates_beside: whether devices communicate while they compute, without taking time from it.
    """

    name: str
    devices: tuple[Device, ...]
    host_link: Link
    host_memory_bytes: int
    peer_link: Link | None = None
    hosts: int = 1
    network_link: Link | None = None
    communicates_beside: bool = True

    def __repr__(self) -> str:
        """One line."""
        count = f"{len(self.devices)} x " if len(self.devices) > 1 else ""
        count = f"{self.hosts} hosts of {count}" if self.hosts > 1 else count
        device, link = self.device, self.host_link.bandwidth / 1e9
        return (
            f"<Machine {self.name}: {count}{device.name}, {device.memory_bytes / 2**30:.4g} GiB of memory at "
            f"{device.memory_bandwidth / 1e9:,.0f} GB/s, {link:.3g} GB/s to and from the host>"
        )

    @property
    def device(self) -> Device:
        """The first device; all are alike."""
        return self.devices[0]
