"""Lifetimes, budgets and offsets."""

from planner.memory.budget import parse_budget
from planner.memory.lifetimes import Chains, Lifetimes, lifetimes, takeover_chains
from planner.memory.packing import Buffers, Packing, buffers_to_csv, pack, plan_buffers, read_buffers, write_buffers
from planner.memory.step_packing import pack_step, step_peak

__all__ = [
    "Buffers", "Chains", "Lifetimes", "Packing", "buffers_to_csv", "lifetimes", "pack", "pack_step", "parse_budget",
    "plan_buffers", "read_buffers", "step_peak", "takeover_chains", "write_buffers",
]  # fmt: skip
