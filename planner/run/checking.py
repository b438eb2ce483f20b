"""Whether eager PyTorch can make the first steps of a run beside it."""

from __future__ import annotations

from planner.capture.step import Step
from planner.graph import Graph
from planner.plan import SwapPlan
from planner.run.footprint import footprint, missing_bytes
from planner.units import format_bytes


def why_unchecked(graph: Graph, plan: SwapPlan, step: Step, *, followed: bool) -> str:
    """Why eager PyTorch should not make a step beside the run, in words; empty where it may.

    Args:
        graph, plan: what is run.
        step: of the graph.
        followed: whether the run's steps are made in the thread of whoever asks for them.
    """
    if not followed and any(op.random for op in graph.ops):
        return "its ops draw from PyTorch's generator, which others may use at the same time (check=True checks)"
    missing = missing_bytes(footprint(graph, plan, step, checked=True))
    return f"eager PyTorch beside it needs {format_bytes(missing)} more than is free" if missing else ""
