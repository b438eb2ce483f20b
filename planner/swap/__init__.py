"""Deciding what leaves the device, and when it comes back."""

from planner.swap.bounds import lower_bound
from planner.swap.planner import METHODS, SwapComparison, compare_plans, plan_swaps
from planner.swap.simulate import simulate

__all__ = ["METHODS", "SwapComparison", "compare_plans", "lower_bound", "plan_swaps", "simulate"]
