"""Machines that can be planned for without being attached.

Memory is the vendor's figure in decimal gigabytes; peaks are the vendor's, without sparsity. Link figures are the
bandwidths of copies from and to pinned memory, measured where a source says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from planner.errors import StowageError
from planner.machine.machine_types import Device, Link, Machine
from planner.machine.roofline import CUDA_EFFICIENCY

_GB = 10**9
_TERA = 1e12


def _gpu(
    name: str, memory_gb: int, bandwidth_gbs: float, *, float32: float, half: float, float64: float,
    bfloat16: float | None = None, launch: float = 5e-6,
) -> Device:  # fmt: skip
    """A CUDA device from its data sheet: memory in GB and GB/s, peaks in TFLOP/s; `launch` in seconds.

    `half` is the peak of matrix products of 16-bit floats that are summed in 32 bits, also of bfloat16 if no other is
    given.
    """
    bfloat16 = half if bfloat16 is None else bfloat16
    peaks = {"float64": float64, "float32": float32, "float16": half, "bfloat16": bfloat16}
    return Device(
        name=name,
        kind="cuda",
        memory_bytes=memory_gb * _GB,
        memory_bandwidth=bandwidth_gbs * _GB,
        flops={dtype: peak * _TERA for dtype, peak in peaks.items()},
        efficiency=CUDA_EFFICIENCY,
        launch_seconds=launch,
    )


#: Host memory where neither a paper nor the usual server gives a figure: half a terabyte.
_HOST_MEMORY = 512 * _GB
_SERVER_MEMORY = 2000 * _GB
_WORKSTATION_MEMORY = 64 * _GB
#: Copies over 16 lanes of PCI Express, measured from and to pinned memory: one way, and both ways together.
_PCIE3, _PCIE4, _PCIE5 = Link(12e9, 20e9, 10e-6), Link(25e9, 42e9, 10e-6), Link(53e9, 90e9, 10e-6)
#: The most hosts that a machine may have.
MOST_HOSTS = 1024
#: A message between hosts by InfiniBand, and by the cloud's Ethernet of 2016.
_INFINIBAND_LATENCY, _ETHERNET_LATENCY = 10e-6, 50e-6

_MACHINES = (
    # SwapAdvisor's machine (ASPLOS 2020): 12 GB/s one way, 20 GB/s both ways together, hosts of 61 to 244 GB
    Machine(
        "v100-16gb",
        (_gpu("NVIDIA V100 SXM2 16 GB", 16, 900, float32=14, half=112, float64=7, launch=1e-5),),
        _PCIE3,
        host_memory_bytes=244 * _GB,
    ),
    # Tofu's machine (EuroSys 2019): 21 GB/s between peers; Amazon's p2.8xlarge has a network of 10 Gb/s
    Machine(
        "k80x8",
        (_gpu("NVIDIA K80, one half", 12, 240, float32=4.4, half=4.4, float64=1.5, launch=1e-5),) * 8,
        Link(10e9, 16e9, 10e-6),
        host_memory_bytes=488 * _GB,
        peer_link=Link(21e9, 42e9, 10e-6),
        network_link=Link(1.25e9, 2.5e9, _ETHERNET_LATENCY),
    ),
    # SXM4, PCIe 4.0 x16 to the host, third-generation NVLink between devices; float32 without TF32
    Machine(
        "a100-80gb",
        (_gpu("NVIDIA A100 SXM4 80 GB", 80, 2039, float32=19.5, half=312, float64=9.7),),
        _PCIE4,
        host_memory_bytes=_HOST_MEMORY,
        peer_link=Link(300e9, 600e9, 5e-6),
    ),
    # SXM5, PCIe 5.0 x16 to the host, fourth-generation NVLink
    Machine(
        "h100",
        (_gpu("NVIDIA H100 SXM5 80 GB", 80, 3350, float32=67, half=989, float64=34),),
        _PCIE5,
        host_memory_bytes=_HOST_MEMORY,
        peer_link=Link(450e9, 900e9, 5e-6),
    ),
    Machine(
        "h200",
        (_gpu("NVIDIA H200 SXM5 141 GB", 141, 4800, float32=67, half=989, float64=34),),
        _PCIE5,
        host_memory_bytes=_HOST_MEMORY,
        peer_link=Link(450e9, 900e9, 5e-6),
    ),
    # a mid-range GPU in a laptop, PCIe 4.0 x8
    Machine(
        "laptop",
        (_gpu("NVIDIA RTX 4060 Laptop 8 GB", 8, 256, float32=11.6, half=46, float64=0.18),),
        Link(12e9, 20e9, 10e-6),
        host_memory_bytes=16 * _GB,
    ),
)


def _card(name: str, device: Device, link: Link, host_memory: int = _HOST_MEMORY, peer: Link | None = None) -> Machine:
    """A host with one GPU."""
    return Machine(name, (device,), link, host_memory_bytes=host_memory, peer_link=peer)


#: Single GPUs by their makers' data sheets; the host has 16 lanes to each. Turing has no bfloat16 of its own, B200 is
#: one of the eight of an HGX board, and to PyTorch devices of ROCm are CUDA devices too.
_CARDS = (
    _card(
        "t4", _gpu("NVIDIA T4 16 GB", 16, 320, float32=8.1, half=65, float64=0.25, bfloat16=8.1, launch=1e-5), _PCIE3
    ),
    _card("l4", _gpu("NVIDIA L4 24 GB", 24, 300, float32=30.3, half=121, float64=0.47), _PCIE4),
    _card("a10", _gpu("NVIDIA A10 24 GB", 24, 600, float32=31.2, half=125, float64=0.98), _PCIE4),
    _card(
        "a100-40gb", _gpu("NVIDIA A100 SXM4 40 GB", 40, 1555, float32=19.5, half=312, float64=9.7), _PCIE4,
        peer=Link(300e9, 600e9, 5e-6),
    ),
    _card(
        "rtx3090", _gpu("NVIDIA GeForce RTX 3090 24 GB", 24, 936, float32=35.6, half=71, float64=0.56), _PCIE4,
        _WORKSTATION_MEMORY,
    ),
    _card(
        "rtx4090", _gpu("NVIDIA GeForce RTX 4090 24 GB", 24, 1008, float32=82.6, half=165, float64=1.29), _PCIE4,
        _WORKSTATION_MEMORY,
    ),
    _card(
        "rtx5090", _gpu("NVIDIA GeForce RTX 5090 32 GB", 32, 1792, float32=104.8, half=210, float64=1.64), _PCIE5,
        _WORKSTATION_MEMORY,
    ),
    _card(
        "b200", _gpu("NVIDIA B200 SXM6 180 GB", 180, 7700, float32=75, half=2250, float64=37), _PCIE5,
        peer=Link(900e9, 1800e9, 5e-6),
    ),
    _card(
        "mi300x", _gpu("AMD Instinct MI300X 192 GB", 192, 5300, float32=163.4, half=1307, float64=81.7), _PCIE5,
        peer=Link(448e9, 896e9, 5e-6),
    ),
)  # fmt: skip


def _with_eight_devices(name: str, preset: str, network_gbs: float) -> Machine:
    """A server with eight devices of a preset, each with a link of its own to the host, all connected by NVSwitch.

    Args:
        name: of the server.
        preset: with one device.
        network_gbs: of all network adapters of the server together, GB/s in one direction.
    """
    device_preset = next(machine for machine in _MACHINES if machine.name == preset)
    return replace(
        device_preset, name=name, devices=device_preset.devices * 8, host_memory_bytes=_SERVER_MEMORY,
        network_link=Link(network_gbs * 1e9, 2 * network_gbs * 1e9, _INFINIBAND_LATENCY),
    )  # fmt: skip


#: NVIDIA's DGX A100 (640 GB), DGX H100 and DGX H200, whose hosts have two terabytes and one network adapter for each
#: device: InfiniBand HDR (200 Gb/s) and NDR (400 Gb/s).
_SERVERS = (
    _with_eight_devices("a100x8", "a100-80gb", 8 * 25),
    _with_eight_devices("h100x8", "h100", 8 * 50),
    _with_eight_devices("h200x8", "h200", 8 * 50),
)

PRESETS: Mapping[str, Machine] = MappingProxyType({preset.name: preset for preset in (*_MACHINES, *_CARDS, *_SERVERS)})


def with_hosts(preset: Machine, hosts: int) -> Machine:
    """Several hosts like that of a preset; `"h100x8:hosts=4"` names them.

    Args:
        preset: with one host.
        hosts: how many, from 1 to `MOST_HOSTS`.

    Raises:
        StowageError: there cannot be so many, or nothing is known of the network between them.
    """
    if not 1 <= hosts <= MOST_HOSTS:
        raise StowageError(f"{preset.name}: hosts must be 1 to {MOST_HOSTS}, got {hosts}")
    if hosts == 1:
        return preset
    if preset.network_link is None:
        networked = [name for name, machine in PRESETS.items() if machine.network_link]
        raise StowageError(f"{preset.name} has no network to other hosts; choose one of {', '.join(networked)}")
    return replace(preset, name=f"{preset.name}:hosts={hosts}", hosts=hosts)
