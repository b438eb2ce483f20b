"""A machine for the page, and what the step needs there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.machine.types import Machine
from widgets.canvas.columns import Message, message

if TYPE_CHECKING:
    from widgets.session.ground import Ground

#: How far beyond the step's peak a budget is near it.
_BEYOND = 1.08


def machine_message(ground: Ground, choice: Sequence[tuple[str, str, int]], budget_bytes: int) -> Message:
    """Pack a machine.

    Args:
        ground: the step on the machine.
        choice: name, label and device bytes of every machine there is to choose from.
        budget_bytes: the slider reaches as far as this and the device's memory at least.
    """
    machine = ground.machine
    near = max(int(_BEYOND * ground.peak_bytes), ground.least_bytes)
    return message("machine", {
        "name": machine.name,
        "label": label_of(machine),
        "device_bytes": machine.device.memory_bytes,
        "host_bytes": machine.host_memory_bytes,
        "machines": choice,
        "least_bytes": ground.least_bytes,
        "least_op": ground.least_op,
        "step_peak_bytes": ground.peak_bytes,
        "ideal_seconds": ground.ideal_seconds,
        "near_bytes": near,
        "slider_bytes": max(near, machine.device.memory_bytes, budget_bytes),
    }, {"op_seconds": ("f4", ground.seconds)})  # fmt: skip


def label_of(machine: Machine) -> str:
    """What a person calls a machine: `V100 SXM2 16 GB`, `this computer's CPU`."""
    if machine.device.kind == "cpu":
        return "this computer's CPU"
    return machine.device.name.removeprefix("NVIDIA ")
