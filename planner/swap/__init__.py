"""Deciding what leaves the device, and when it comes back."""

from planner.swap.bounds import lower_bound
from planner.swap.course import METHODS, Point
from planner.swap.planner import SwapComparison, compare_plans, plan_swaps
from planner.swap.search import SearchProgress, SwapSearch, load_search, search_swaps
from planner.swap.simulate import simulate

__all__ = [
    "METHODS", "Point", "SearchProgress", "SwapComparison", "SwapSearch", "compare_plans", "load_search",
    "lower_bound", "plan_swaps", "search_swaps", "simulate",
]  # fmt: skip
