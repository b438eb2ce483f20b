"""Lifetimes, offsets, plans, and the validator that shares no code with any planner."""

from planner.memory.budget import format_apart, format_bytes, parse_budget
from planner.memory.buffers import Buffers, buffers_to_csv, plan_buffers, read_buffers, write_buffers
from planner.memory.lifetimes import Chains, Lifetimes, lifetimes, takeover_chains
from planner.memory.packing import Packing, pack
from planner.memory.plan import HostResidency, Residency, SwapIn, SwapOut, SwapPlan
from planner.memory.step_packing import pack_step, step_peak
from planner.memory.store import load_plan, plan_from_json, plan_to_json, save_plan
from planner.memory.timeline import Timeline
from planner.memory.trace import save_trace, trace_json
from planner.memory.validator import validate

__all__ = [
    "Buffers", "Chains", "HostResidency", "Lifetimes", "Packing", "Residency", "SwapIn", "SwapOut", "SwapPlan",
    "Timeline", "buffers_to_csv", "format_apart", "format_bytes", "lifetimes", "load_plan", "pack",
    "pack_step", "parse_budget",
    "plan_buffers", "plan_from_json", "plan_to_json", "read_buffers", "save_plan", "save_trace", "step_peak",
    "takeover_chains", "trace_json", "validate", "write_buffers",
]  # fmt: skip
