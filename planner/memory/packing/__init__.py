"""Offsets for boxes that must not overlap."""

from planner.memory.packing.infeasible_subset import PackingConflict
from planner.memory.packing.minimalloc_csv import Buffers, buffers_to_csv, plan_buffers, read_buffers, write_buffers
from planner.memory.packing.pack import Packing, pack

__all__ = [
    "Buffers",
    "Packing",
    "PackingConflict",
    "buffers_to_csv",
    "pack",
    "plan_buffers",
    "read_buffers",
    "write_buffers",
]
