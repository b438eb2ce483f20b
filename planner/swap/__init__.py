"""Deciding what leaves the device, and when it comes back."""

from planner.swap.bounds import lower_bound
from planner.swap.course import METHODS, Point
from planner.swap.explain import Explanation, explain
from planner.swap.marginal import Gain, Marginal, marginal
from planner.swap.order_bound import order_bound
from planner.swap.pareto import BudgetPoint, sweep
from planner.swap.planner import SwapComparison, compare_plans, plan_swaps
from planner.swap.search import SearchProgress, SwapSearch, load_search, search_swaps
from planner.swap.simulate import simulate

__all__ = [
    "METHODS", "BudgetPoint", "Explanation", "Gain", "Marginal", "Point", "SearchProgress", "SwapComparison",
    "SwapSearch", "compare_plans", "explain", "load_search", "lower_bound", "marginal", "order_bound", "plan_swaps",
    "search_swaps", "simulate", "sweep",
]  # fmt: skip
