"""Adopt the plan that a run made for this computer, because the plan shown cannot be run here."""

from __future__ import annotations

from planner.plan import SwapPlan, predicted_op_seconds
from widgets.info import assess_feasibility
from widgets.session.state import machines
from widgets.session.state.jobs import Job
from widgets.session.state.plan_cache import PlanCache
from widgets.session.state.session_state import SessionState
from widgets.session.tasks import planning
from widgets.session.tasks.capturing import settle


def adopt(session_state: SessionState, job: Job, plan: SwapPlan) -> None:
    """Show the plan that is being run, on this computer, with the times and the scratch memory measured here.

    Earlier plans stay in the cache of their own machine.

    Args:
        session_state: the session state of the planned step.
        job: the job of the run.
        plan: a valid plan.
    """
    assert session_state.graph is not None
    graph = session_state.graph.with_workspaces(dict(plan.workspaces))
    plan_cache = PlanCache(assess_feasibility(graph, machines.find(plan.machine), predicted_op_seconds(plan)))
    with session_state.message_bus.lock:
        if not job.current:
            return
        session_state.jobs.drop("plan", "search", "sweep", "machine")
        planning.drop_search(session_state)
        session_state.budget = plan.budget_bytes
        settle(session_state, plan_cache)
        planning.begin(session_state, plan)
