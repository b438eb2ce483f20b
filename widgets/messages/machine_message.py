"""A machine for the page, and what the step needs on it."""

from __future__ import annotations

from collections.abc import Sequence

from planner.machine import Machine, approximation
from widgets.info import Feasibility, get_reasons
from widgets.messages.message import Message, message

#: Budgets up to this factor of the step's peak count as near it.
_BEYOND = 1.08


def machine_message(feasibility: Feasibility, choice: Sequence[tuple[str, str, int]], budget_bytes: int) -> Message:
    """Pack a machine.

    Args:
        feasibility: the feasibility of the step on the machine.
        choice: name, label and device bytes of every machine that can be selected.
        budget_bytes: the budget; the slider reaches at least this and the device's memory.
    """
    machine, reasons = feasibility.machine, get_reasons(feasibility)
    near = max(int(_BEYOND * feasibility.peak_bytes), feasibility.least_bytes)
    return message("machine", {
        "name": machine.name,
        "label": label_of(machine),
        "device_bytes": machine.device.memory_bytes,
        "host_bytes": machine.host_memory_bytes,
        "machines": choice,
        "least_bytes": feasibility.least_bytes,
        "least_op": feasibility.least_op,
        "step_peak_bytes": feasibility.peak_bytes,
        "outside_bytes": feasibility.graph.outside_bytes,
        "least": reasons.least,
        "why": {verdict: {"head": why.head, "parts": why.parts} for verdict, why in reasons.why.items()},
        "approximate": approximation(feasibility.graph, machine),
        "ideal_seconds": feasibility.ideal_seconds,
        "near_bytes": near,
        "slider_bytes": max(near, machine.device.memory_bytes, budget_bytes),
    }, {"op_seconds": ("f4", feasibility.seconds)})  # fmt: skip


def label_of(machine: Machine) -> str:
    """A readable name of a machine: `V100 SXM2 16 GB`, `this computer's CPU`."""
    if machine.device.kind == "cpu":
        return "this computer's CPU"
    return machine.device.name.removeprefix("NVIDIA ")
