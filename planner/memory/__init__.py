"""Lifetimes, budgets and offsets."""

from planner.memory.budget import parse_budget
from planner.memory.liveness import Chains, Lifetimes, lifetimes, reuse_chains
from planner.memory.packing import (
    Buffers,
    Packing,
    PackingConflict,
    buffers_to_csv,
    pack,
    plan_buffers,
    read_buffers,
    write_buffers,
)
from planner.memory.packing.exact import place_exactly
from planner.memory.peak_parts import peak_lines, peak_storages
from planner.memory.step_packing import is_step_peak_known, pack_step, step_peak
from planner.memory.unswapped import unswapped_bytes

__all__ = [
    "Buffers",
    "Chains",
    "Lifetimes",
    "Packing",
    "PackingConflict",
    "buffers_to_csv",
    "is_step_peak_known",
    "lifetimes",
    "pack",
    "pack_step",
    "parse_budget",
    "peak_lines",
    "peak_storages",
    "place_exactly",
    "plan_buffers",
    "read_buffers",
    "reuse_chains",
    "step_peak",
    "unswapped_bytes",
    "write_buffers",
]  # fmt: skip
