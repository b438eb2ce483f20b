"""Machines that plans are made for, and op times predicted for machines that are not attached."""

from planner.callable_package import make_callable
from planner.machine.machine_types import Device, Link, Machine
from planner.machine.op_classes import OpClass, op_class, operator
from planner.machine.presets import PRESETS
from planner.machine.roofline import CPU_EFFICIENCY, CUDA_EFFICIENCY, op_seconds

make_callable(__name__, "planner.profile")  # measures the attached machine

__all__ = [
    "CPU_EFFICIENCY",
    "CUDA_EFFICIENCY",
    "PRESETS",
    "Device",
    "Link",
    "Machine",
    "OpClass",
    "machine",
    "op_class",
    "op_seconds",
    "operator",
]  # fmt: skip
