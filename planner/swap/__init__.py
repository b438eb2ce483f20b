"""Deciding what leaves the device, and when it comes back."""

from planner.swap.bounds.any_order import lower_bound
from planner.swap.bounds.fixed_order import order_bound
from planner.swap.explain.report import Explanation, explain
from planner.swap.search.blocking import SwapComparison, compare_plans, plan_swaps
from planner.swap.search.budget_sweep import BudgetPoint, sweep
from planner.swap.search.driver import METHODS, Point
from planner.swap.search.handle import SearchProgress, SwapSearch, load_search, search_swaps
from planner.swap.search.sensitivity import Gain, Marginal, marginal
from planner.swap.simulate.streams import simulate

__all__ = [
    "METHODS", "BudgetPoint", "Explanation", "Gain", "Marginal", "Point", "SearchProgress", "SwapComparison",
    "SwapSearch", "compare_plans", "explain", "load_search", "lower_bound", "marginal", "order_bound", "plan_swaps",
    "search_swaps", "simulate", "sweep",
]  # fmt: skip
