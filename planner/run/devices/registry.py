"""The devices that steps can be run on."""

from __future__ import annotations

from collections.abc import Mapping

from planner.run.devices.cpu import CpuDevice

#: By the name that `run` and `capture` take, what makes the device.
DEVICES: Mapping[str, type[CpuDevice]] = {CpuDevice.name: CpuDevice}
