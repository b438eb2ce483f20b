"""Plans, their timelines, files and traces, and the validator that shares no code with any planner."""

from planner.plan.index import PlanIndex
from planner.plan.replay import ComputeWait, compute_waits, memory_over_time, residency_seconds
from planner.plan.store import load_plan, plan_from_json, plan_to_json, save_plan
from planner.plan.swap_plan import HostResidency, Residency, SwapIn, SwapOut, SwapPlan
from planner.plan.timeline import Timeline
from planner.plan.trace import save_trace, trace_json
from planner.plan.validator import validate

__all__ = [
    "ComputeWait", "HostResidency", "PlanIndex", "Residency", "SwapIn", "SwapOut", "SwapPlan", "Timeline",
    "compute_waits", "load_plan", "memory_over_time", "plan_from_json", "plan_to_json", "residency_seconds",
    "save_plan", "save_trace", "trace_json", "validate",
]  # fmt: skip
