"""The devices that steps can be run on."""

from __future__ import annotations

from collections.abc import Mapping

from planner.run.devices.cpu import CpuDevice
from planner.run.devices.cuda.cuda_device import CudaDevice

#: By the name that `run` and `capture` take, what makes the device.
DEVICES: Mapping[str, type[CpuDevice] | type[CudaDevice]] = {each.name: each for each in (CpuDevice, CudaDevice)}
