"""Machines, how long ops take on them, and what is attached."""

from planner.machine.cache import cache_path
from planner.machine.families import Family, family
from planner.machine.measure import OpMeasurements, measure_ops
from planner.machine.named import machine, machines
from planner.machine.roofline import op_seconds
from planner.machine.timed import Timed, timed
from planner.machine.types import Device, Link, Machine
from planner.rooms import make_callable

make_callable(__name__)

__all__ = [
    "Device", "Family", "Link", "Machine", "OpMeasurements", "Timed", "cache_path", "family", "machine", "machines",
    "measure_ops", "op_seconds", "timed",
]  # fmt: skip
