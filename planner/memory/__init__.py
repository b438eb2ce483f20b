"""Lifetimes, offsets, plans, and the validator that shares no code with any planner."""

from planner.memory.budget import format_apart, format_bytes, parse_budget
from planner.memory.buffers import Buffers, read_buffers, write_buffers
from planner.memory.lifetimes import Chains, Lifetimes, lifetimes, takeover_chains
from planner.memory.packing import Packing, pack
from planner.memory.plan import HostResidency, Residency, SwapIn, SwapOut, SwapPlan
from planner.memory.step_packing import pack_step, step_peak
from planner.memory.store import load_plan, plan_from_json, plan_to_json, save_plan
from planner.memory.timeline import Timeline
from planner.memory.validator import validate

__all__ = [
    "Buffers", "Chains", "HostResidency", "Lifetimes", "Packing", "Residency", "SwapIn", "SwapOut", "SwapPlan",
    "Timeline", "format_apart", "format_bytes", "lifetimes", "load_plan", "pack", "pack_step", "parse_budget",
    "plan_from_json", "plan_to_json", "read_buffers", "save_plan", "step_peak", "takeover_chains", "validate",
    "write_buffers",
]  # fmt: skip
