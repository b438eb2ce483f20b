"""The graph that a plan is for: any other is refused, and scratch memory is as the plan has it."""

from __future__ import annotations

from planner.errors import StowageError
from planner.graph import Graph, fingerprint
from planner.plan.schema.swap_plan import SwapPlan
from planner.plan.schema.timeline import Timeline


def own_graph(graph: Graph, plan: SwapPlan) -> Graph:
    """The graph of a plan, with the workspaces that the plan provides for.

    A graph that was captured again, as for a run, may need other scratch memory, on which the ids of
    workspaces depend.

    Args:
        graph: the step.
        plan: its plan.

    Raises:
        StowageError: the plan is for another graph.
    """
    if plan.graph != fingerprint(graph):
        raise StowageError(f"this plan is not for {graph.name}; give the graph that it was made for, or plan again")
    return graph.with_workspaces(dict(plan.workspaces))


def require_own_timeline(plan: SwapPlan, timeline: Timeline) -> None:
    """Refuse a timeline whose spans are not those of a plan.

    Raises:
        StowageError: it has other lanes than the plan, or other numbers of spans on them.
    """
    if {lane: len(spans) for lane, spans in timeline.spans.items()} != {k: len(v) for k, v in plan.queues.items()}:
        raise StowageError("this timeline is not one of this plan; give the timeline of a run of the same plan")
