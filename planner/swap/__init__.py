"""Deciding what leaves the device, and when it comes back."""

from planner.swap.baselines.registry import resident_plan
from planner.swap.bounds.any_order import lower_bound
from planner.swap.bounds.fixed_order import order_bound
from planner.swap.bounds.live_sets import live_sets
from planner.swap.explain.explain_plan import explain
from planner.swap.explain.explanation import Explanation
from planner.swap.methods.eviction_portfolio import CLOSE
from planner.swap.methods.swapadvisor.figure_1 import Case, Span, figure_1
from planner.swap.problem.problem import Seconds
from planner.swap.schedule.budget_feasibility import (
    BudgetTooSmallError,
    CopiesNeededError,
    HostBudgetTooSmallError,
    least_budget,
    working_sets,
)
from planner.swap.search.blocking import PlanWithBaselines, plan_swaps, plan_with_baselines
from planner.swap.search.budget_sweep import BudgetPoint, sweep
from planner.swap.search.driver import DEFAULT as DEFAULT_METHOD
from planner.swap.search.driver import METHODS, Point, check_choice
from planner.swap.search.driver import RECOMPUTING as RECOMPUTING_METHODS
from planner.swap.search.handle import SearchProgress, SwapSearch, load_search, search_swaps
from planner.swap.search.inputs import make_problem, peak_of
from planner.swap.search.sensitivity import Gain, Sensitivity, sensitivity
from planner.swap.search.time_estimate import estimated_seconds
from planner.swap.simulate.streams import simulate

__all__ = [
    "CLOSE",
    "DEFAULT_METHOD",
    "METHODS",
    "RECOMPUTING_METHODS",
    "BudgetPoint",
    "BudgetTooSmallError",
    "Case",
    "CopiesNeededError",
    "Explanation",
    "Gain",
    "HostBudgetTooSmallError",
    "PlanWithBaselines",
    "Point",
    "SearchProgress",
    "Seconds",
    "Sensitivity",
    "Span",
    "SwapSearch",
    "check_choice",
    "estimated_seconds",
    "explain",
    "figure_1",
    "format_seconds",
    "least_budget",
    "live_sets",
    "load_search",
    "lower_bound",
    "make_problem",
    "order_bound",
    "peak_of",
    "plan_swaps",
    "plan_with_baselines",
    "resident_plan",
    "search_swaps",
    "sensitivity",
    "simulate",
    "sweep",
    "working_sets",
]  # fmt: skip
