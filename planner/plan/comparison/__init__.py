"""Two plans of one step side by side."""

from planner.plan.comparison.comparing import compare_plans
from planner.plan.comparison.plan_comparison import PlanComparison, PlanFigures, TensorDifference, Treatment
from planner.plan.comparison.unlike_memory import MemorySpan

__all__ = ["MemorySpan", "PlanComparison", "PlanFigures", "TensorDifference", "Treatment", "compare_plans"]
