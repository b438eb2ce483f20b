"""Machines that plans are made for, and op times predicted for machines that are not attached."""

from planner.callable_package import make_callable
from planner.machine.approximation import approximation
from planner.machine.collectives import Collective, CollectiveAlgorithm, collective_seconds
from planner.machine.graph_collectives import is_collective
from planner.machine.machine_types import Device, Link, Machine
from planner.machine.mesh_links import MeshLevel, mesh_levels, prime_factors
from planner.machine.op_classes import OpClass, op_class, operator
from planner.machine.preset_overrides import SETTINGS, with_settings
from planner.machine.presets import MOST_HOSTS, PRESETS, with_hosts
from planner.machine.reserve import Reserve, reserve_of, usable_bytes
from planner.machine.roofline import CPU_EFFICIENCY, CUDA_EFFICIENCY, op_seconds

make_callable(__name__, "planner.profile")  # measures the attached machine

__all__ = [
    "CPU_EFFICIENCY",
    "CUDA_EFFICIENCY",
    "MOST_HOSTS",
    "PRESETS",
    "SETTINGS",
    "Collective",
    "CollectiveAlgorithm",
    "Device",
    "Link",
    "Machine",
    "MeshLevel",
    "OpClass",
    "Reserve",
    "approximation",
    "collective_seconds",
    "is_collective",
    "machine",
    "mesh_levels",
    "op_class",
    "op_seconds",
    "operator",
    "prime_factors",
    "reserve_of",
    "usable_bytes",
    "with_hosts",
    "with_settings",
]  # fmt: skip
