"""Deciding what leaves the device, and when it comes back."""

from planner.swap.planner import METHODS, plan_swaps
from planner.swap.simulate import simulate

__all__ = ["METHODS", "plan_swaps", "simulate"]
