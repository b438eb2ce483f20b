"""A plan that a run made for this computer, in place of the one that was drawn and does not hold here."""

from __future__ import annotations

from planner.plan import SwapPlan
from widgets.session import machines, planning
from widgets.session.capturing import seconds_of, settle
from widgets.session.core import Core
from widgets.session.ground import lay_ground
from widgets.session.jobs import Job
from widgets.session.shelf import Shelf


def adopt(core: Core, job: Job, plan: SwapPlan) -> None:
    """Draw the plan that is run, on this computer, with the times and the temporary memory that were measured here.

    What was found before stays with the machine that it was found for.

    Args:
        core: whose step the plan is for.
        job: the run's.
        plan: valid.
    """
    assert core.graph is not None
    graph = core.graph.with_workspaces(dict(plan.workspaces))
    shelf = Shelf(lay_ground(graph, machines.find(plan.machine), seconds_of(plan)))
    with core.outbox.turn:
        if not job.current:
            return
        core.jobs.drop("plan", "search", "sweep", "machine")
        planning.drop_search(core)
        core.budget = plan.budget_bytes
        settle(core, shelf)
        planning.begin(core, plan)
