"""Whether the first steps of a run can be checked against eager PyTorch."""

from __future__ import annotations

from planner.graph import Graph
from planner.memory import lifetimes
from planner.plan import SwapPlan
from planner.program import backend_of
from planner.run.prepare.footprint import footprint, missing_bytes
from planner.step import Step
from planner.units import format_bytes


def why_unchecked(graph: Graph, plan: SwapPlan, step: Step, *, followed: bool) -> str:
    """Why a step should not be checked against eager PyTorch, in words; empty if it can be.

    Args:
        graph, plan: of the run.
        step: of the graph.
        followed: whether the run's steps are made in the caller's thread.
    """
    if not followed and any(op.random for op in graph.ops):
        return "its ops draw from PyTorch's generator, which others may use at the same time (check=True checks)"
    missing = missing_bytes(footprint(graph, plan, step, checked=True))
    if graph.device != "cpu":
        taken = plan.peak_bytes + graph.outside_bytes + lifetimes(graph).peak_bytes
        missing = max(missing, taken - backend_of(graph.device).free_bytes())
    return f"eager PyTorch beside it needs {format_bytes(missing)} more than is free" if missing > 0 else ""
