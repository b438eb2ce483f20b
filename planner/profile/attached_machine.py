"""The attached machine, measured."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import psutil
import torch

from planner.machine import CPU_EFFICIENCY, CUDA_EFFICIENCY, Device, Machine
from planner.profile.speed import measure_link, measure_matmul, measure_memory

_CPU_ALIGNMENT = 64
_DTYPES = (torch.float32, torch.bfloat16)


@cache
def attached_cpu() -> Machine:
    """The CPU as a machine: the arena and the host slab are in the same memory, and threads copy between them.

    Its speeds are measured once per process, in about a second.
    """
    cpu = torch.device("cpu")
    memory = int(psutil.virtual_memory().total)
    device = Device(
        name=cpu_name(),
        kind="cpu",
        memory_bytes=memory,
        memory_bandwidth=measure_memory(cpu),
        flops=_peaks(cpu),
        efficiency=CPU_EFFICIENCY,
        launch_seconds=2e-6,
        alignment=_CPU_ALIGNMENT,
    )
    return Machine("cpu", (device,), measure_link(cpu), host_memory_bytes=memory)


@cache
def attached() -> Machine:
    """The attached machine: the CUDA devices if there are any, otherwise the CPU."""
    if not torch.cuda.is_available():
        cpu = attached_cpu()
        return Machine("auto", cpu.devices, cpu.host_link, cpu.host_memory_bytes)
    devices = [torch.device("cuda", index) for index in range(torch.cuda.device_count())]
    peer = measure_link(devices[0], devices[1]) if len(devices) > 1 else None
    return Machine(
        "auto",
        (_cuda(devices[0]),) * len(devices),
        measure_link(devices[0]),
        host_memory_bytes=int(psutil.virtual_memory().total),
        peer_link=peer,
    )


def is_attached(machine: Machine, device: str) -> bool:
    """Whether a machine is this computer, with its devices of a type.

    Args:
        machine: a preset, or a measured one.
        device: PyTorch's name of the type.
    """
    return machine.device.kind == device and (device == "cpu" or machine.name == "auto")


def cpu_name() -> str:
    """The processor's model name as reported by the system."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    model_names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (model_names and model_names[0]) or platform.processor() or platform.machine()


def _cuda(device: torch.device) -> Device:
    properties = torch.cuda.get_device_properties(device)
    return Device(
        name=str(properties.name),
        kind="cuda",
        memory_bytes=int(properties.total_memory),
        memory_bandwidth=measure_memory(device),
        flops=_peaks(device),
        efficiency=CUDA_EFFICIENCY,
    )


def _peaks(device: torch.device) -> Mapping[str, float]:
    return {str(dtype).removeprefix("torch."): measure_matmul(device, dtype) for dtype in _DTYPES}
