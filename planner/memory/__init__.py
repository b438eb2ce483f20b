"""Lifetimes, offsets, plans, and the validator that shares no code with any planner."""

from planner.memory.budget import format_bytes, parse_budget
from planner.memory.lifetimes import Chains, Lifetimes, lifetimes, takeover_chains
from planner.memory.plan import HostResidency, Residency, SwapIn, SwapOut, SwapPlan
from planner.memory.timeline import Timeline

__all__ = [
    "Chains", "HostResidency", "Lifetimes", "Residency", "SwapIn", "SwapOut", "SwapPlan", "Timeline",
    "format_bytes", "lifetimes", "parse_budget", "takeover_chains",
]  # fmt: skip
