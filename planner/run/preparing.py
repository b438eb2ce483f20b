"""From a step to a plan that may be run: captured, planned with op times measured here, and validated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from time import sleep
from typing import Literal

from planner.capture import capture
from planner.capture.sole import sole
from planner.capture.step import Step
from planner.errors import StowageError
from planner.graph import Graph, fingerprint, structure
from planner.machine.types import Link
from planner.plan import SwapPlan, validate
from planner.run.footprint import refuse_too_large
from planner.run.interrupts import interruptibly
from planner.run.stopping import Stop

#: A run is not kept waiting for a better plan for longer than this.
_PLANNING_SECONDS = 10.0
_LOOK_SECONDS = 0.02

Progress = Callable[[float, str], object]


@dataclass(frozen=True, eq=False)
class Asked:
    """What a run is asked to be.

    Args:
        step: what to run.
        plan: made for the step's graph; None to plan here.
        budget: device bytes or text; None for what the step takes.
        link: the link to imitate; None for none.
        steps, device, check, stress, remeasure, recheck: as in `run`; for `recheck`, None for its own choice and 0 for
            never.
    """

    step: Step
    plan: SwapPlan | None
    budget: str | int | None
    link: Link | None
    steps: int
    device: str
    check: bool | Literal["first"]
    stress: bool
    remeasure: bool
    recheck: int | None


def prepare(
    asked: Asked, stop: Stop, report: Progress, known: Sequence[tuple[Graph, SwapPlan]] = (), *, within: bool = False
) -> tuple[Graph, SwapPlan]:
    """The graph of what is asked for, and a valid plan for it.

    Args:
        asked: what to prepare.
        known: plans for graphs of the step as it was before.
        within: whether to plan anew within the budget of the plan asked for, where that is for another graph.
        stop: looked at all the time.
        report: told the share of all this that is done, from 0 to 1 and never falling, and what is being done.

    Raises:
        StowageError: the step cannot be captured, there is no plan within the budget, or the plan given is not valid.
        Cancelled: it was asked to stop.
    """

    reached = 0.0

    def part(begin: float, end: float) -> Progress:
        def heed(share: float, doing: str) -> None:
            nonlocal reached  # rounds of measuring, and budgets of planning, may begin anew
            stop.between_steps()
            reached = max(reached, begin + share * (end - begin))
            report(reached, doing)

        return heed

    capturing = part(0.0, 1.0 if asked.plan is not None else 0.2)
    capturing(0.0, "capturing the step")
    with sole(stop.between_steps):
        graph = capture(asked.step, progress=capturing)
    plan = _transferred(graph, known)
    if plan is None and within and asked.plan is not None:
        asked = replace(asked, plan=None, budget=asked.plan.budget_bytes)
    if plan is None:
        refuse_too_large(graph, asked.plan, asked.step, checked=False)  # a minute before a plan says so
        plan = _planned(graph, asked, stop, part(0.2, 0.6), part(0.6, 1.0)) if asked.plan is None else asked.plan
    stop.between_steps()
    _refuse_invalid(plan, graph, asked.step.change)
    return graph, plan


def _transferred(graph: Graph, known: Sequence[tuple[Graph, SwapPlan]]) -> SwapPlan | None:
    """A plan for a graph that differs from this one in numbers alone, as one of this one."""
    wanted = structure(graph) if known else ""
    for other, plan in known:
        if other is graph:
            return plan
        if structure(other) == wanted:
            return replace(plan, graph=fingerprint(graph))
    return None


def _planned(graph: Graph, asked: Asked, stop: Stop, measuring: Progress, planning: Progress) -> SwapPlan:
    """A plan for this CPU, with op times and temporary memory as they are measured here."""
    from planner.machine import machine, timed
    from planner.swap import search_swaps

    measuring(0.0, "measuring this CPU")
    here = interruptibly(lambda: machine("cpu", progress=False), stop.between_steps)
    if asked.link is not None:
        here = replace(here, host_link=asked.link)
    measuring(0.0, "measuring ops")
    with sole(stop.between_steps):  # a round of ops takes as long as a step, and there are many rounds
        ready = interruptibly(
            lambda: timed(graph, here, progress=measuring, remeasure=asked.remeasure), stop.between_steps
        )
    planning(0.0, "planning")
    budget = "100%" if asked.budget is None else asked.budget
    search = search_swaps(ready.graph, here, budget, seconds=ready.seconds, time_limit=_PLANNING_SECONDS)
    try:
        while (progress := search.progress).state == "running":
            planning(progress.share, progress.doing)
            sleep(_LOOK_SECONDS)
    except BaseException:
        search.cancel()
        with suppress(StowageError):
            search.wait()
        raise
    return search.wait()


def _refuse_invalid(plan: SwapPlan, graph: Graph, change: str) -> None:
    if plan.graph != fingerprint(graph):
        since = f" since {change}" if change else ""
        raise StowageError(
            f"this plan is not for {graph.name}: its graph is another one{since}; plan again for this step"
        )
    problems = validate(plan, graph.with_workspaces(dict(plan.workspaces)))
    if problems:
        raise StowageError(f"this plan is not valid: {problems[0].rstrip('.')}; plan again")
