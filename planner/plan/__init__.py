"""Plans, their timelines, files and traces, and the validator that shares no code with any planner."""

from planner.plan.comparison import (
    MemorySpan,
    PlanComparison,
    PlanFigures,
    TensorDifference,
    Treatment,
    compare_plans,
)
from planner.plan.index import PlanIndex
from planner.plan.own_graph import own_graph, require_own_timeline
from planner.plan.recomputation_check import require_each_op_once
from planner.plan.replay import memory_over_time
from planner.plan.schema.lanes import COMMUNICATION, COMPUTE, SWAP_IN, SWAP_OUT, Lane
from planner.plan.schema.swap_plan import (
    Communication,
    HostResidency,
    Residency,
    SwapIn,
    SwapOut,
    SwapPlan,
    device_queues,
)
from planner.plan.schema.timeline import MemorySamples, Timeline
from planner.plan.stalls import ComputeWait, WaitShare, compute_waits
from planner.plan.store import load_plan, plan_from_json, plan_to_json, save_plan
from planner.plan.summary import (
    PlanSummary,
    bytes_copied,
    gap_percent,
    percent_of_ideal,
    predicted_op_seconds,
    recompute_seconds,
)
from planner.plan.trace import save_trace, trace_json
from planner.plan.validator import validate

__all__ = [
    "COMMUNICATION", "COMPUTE", "SWAP_IN", "SWAP_OUT", "Communication", "ComputeWait", "HostResidency",
    "Lane", "MemorySamples", "MemorySpan", "PlanComparison", "PlanFigures", "PlanIndex",
    "PlanSummary", "Residency", "SwapIn", "SwapOut", "SwapPlan", "TensorDifference", "Timeline", "Treatment",
    "WaitShare", "bytes_copied", "compare_plans", "compute_waits", "device_queues", "gap_percent", "load_plan",
    "memory_over_time", "own_graph", "percent_of_ideal", "plan_from_json", "plan_to_json", "predicted_op_seconds",
    "recompute_seconds", "require_each_op_once", "require_own_timeline", "save_plan", "save_trace", "trace_json",
    "validate",
]  # fmt: skip
