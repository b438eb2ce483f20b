"""Sweep a few other budgets for plans while no other job is running."""

from __future__ import annotations

from dataclasses import replace
from time import sleep

import numpy as np

from planner.errors import StowageError
from planner.plan import SwapPlan
from planner.swap import SwapSearch, search_swaps
from planner.units import format_bytes
from widgets.messages import MessageKind, front_at_rest, front_message, machine_message, samples_message
from widgets.session.state import machines
from widgets.session.state.feature import Feature, foreground_jobs
from widgets.session.state.jobs import Job
from widgets.session.state.session_state import SessionState
from widgets.session.tasks import planning

_POINTS = 9
_SECONDS_EACH = 3.0
_LOOK_SECONDS = 0.05
_CLOSE = 1.0001


def begin(session_state: SessionState) -> None:
    """Start the sweep over budgets if a view is open, no sweep is running, and budgets are left."""
    with session_state.message_bus.lock:
        if (
            session_state.has_viewers
            and session_state.feasibility is not None
            and not session_state.jobs.running("sweep")
            and _open(session_state)
        ):
            session_state.jobs.start("sweep", lambda job: _sweep(session_state, job))


def publish(session_state: SessionState, doing: str = "", share: float | None = None) -> None:
    """Send the cost curve and the front as far as they are known."""
    with session_state.message_bus.lock:
        if session_state.plan_cache is not None:
            session_state.message_bus.publish(
                samples_message(session_state.plan_cache.samples()),
                front_message(session_state.plan_cache.rows(), doing, share),
            )


def _budgets(session_state: SessionState) -> list[int]:
    """Budgets from the least to the peak in geometric progression, coarse steps first."""
    feasibility = session_state.feasibility
    assert feasibility is not None
    if feasibility.least_bytes >= feasibility.peak_bytes:
        return []
    steps = np.geomspace(feasibility.least_bytes, feasibility.peak_bytes, _POINTS)[:-1]
    coarse = sorted(range(len(steps)), key=lambda at: -(at & -at) if at else -_POINTS)
    return list(dict.fromkeys(int(np.ceil(steps[at])) for at in coarse))


def _open(session_state: SessionState) -> list[int]:
    """The budgets that were not tried yet."""
    plan_cache = session_state.plan_cache
    return [] if plan_cache is None else [budget for budget in _budgets(session_state) if not plan_cache.seen(budget)]


def _sweep(session_state: SessionState, job: Job) -> None:
    plan_cache = session_state.plan_cache
    assert plan_cache is not None
    _find_least(session_state, job)
    every = _budgets(session_state)
    while (left := _open(session_state)) and not job.stop.requested:
        if session_state.jobs.running(*foreground_jobs()):
            sleep(_LOOK_SECONDS)
            continue
        budget = left[0]
        with session_state.message_bus.lock:
            if not job.current:
                return
            publish(session_state, f"planning for {format_bytes(budget)}", 1 - len(left) / len(every))
        _look_at(session_state, job, budget)
    with session_state.message_bus.lock:
        if job.current:
            publish(session_state)


def _find_least(session_state: SessionState, job: Job) -> None:
    """Find the exact least budget, and plan again if that changes the verdict on the current budget."""
    feasibility = session_state.feasibility
    assert feasibility is not None
    if feasibility.exact:
        return
    exact = feasibility.with_exact_least()
    with session_state.message_bus.lock:
        if not job.current or session_state.feasibility is not feasibility:
            return
        session_state.feasibility = exact
        if session_state.plan_cache is not None:
            session_state.plan_cache.feasibility = exact  # for when its machine is chosen again
        if exact.least_bytes < feasibility.least_bytes:
            session_state.message_bus.publish(
                machine_message(exact, machines.choice(exact.machine), session_state.budget_bytes)
            )
        if feasibility.verdict(session_state.budget_bytes) != exact.verdict(session_state.budget_bytes):
            planning.begin(session_state)


def _look_at(session_state: SessionState, job: Job, budget: int) -> None:
    """Find a plan for one budget, unless another job starts meanwhile; then the budget is tried again later."""
    feasibility, plan_cache = session_state.feasibility, session_state.plan_cache
    assert feasibility is not None
    assert plan_cache is not None
    known = plan_cache.fitting(budget)
    if known is None or known.predicted.seconds > feasibility.ideal_seconds * _CLOSE:
        try:
            search = search_swaps(
                feasibility.graph, feasibility.machine, budget, seconds=feasibility.seconds, method="calendar",
                seed=session_state.seed, time_limit=_SECONDS_EACH, threads=1,
            )  # fmt: skip
        except StowageError:
            plan_cache.note(budget)
            return
        if not _ended(session_state, job, search):
            return
        known = min((plan for plan in (search.best, known) if plan is not None),
                    key=lambda plan: plan.predicted.seconds, default=None)  # fmt: skip
    with session_state.message_bus.lock:
        plan_cache.note(budget)
        if known is None or not job.current:
            return
        plan_cache.add(replace(known, budget_bytes=budget))
    _draw_better(session_state, job)


def _draw_better(session_state: SessionState, sweep: Job) -> None:
    """Show the fastest plan known to fit the budget: one for less memory may be faster than the plan shown."""
    with session_state.message_bus.lock:
        plan_cache, drawn = session_state.plan_cache, session_state.plan
        if (
            plan_cache is None
            or not sweep.current
            or session_state.chosen
            or session_state.run is not None
            or session_state.jobs.running(*foreground_jobs())
        ):
            return
        best = plan_cache.fitting(session_state.budget_bytes)
        if best is not None and (drawn is None or best.predicted.seconds * _CLOSE < drawn.predicted.seconds):
            session_state.jobs.start(
                "plan", lambda job: _draw(session_state, job, best)
            )  # setting another budget replaces this job


def _draw(session_state: SessionState, job: Job, plan: SwapPlan) -> None:
    session_state.draw(job, plan, unasked=True)


def _ended(session_state: SessionState, job: Job, search: SwapSearch) -> bool:
    """Wait for a search; returns False if it was cancelled because another job started."""
    while search.progress.state == "running":
        if job.stop.requested or session_state.jobs.running(*foreground_jobs()):
            search.cancel()
            return False
        if search.progress.seconds > 2 * _SECONDS_EACH:
            search.cancel()
        sleep(_LOOK_SECONDS)
    return True


FEATURE = Feature[None](
    "sweep", kinds=(MessageKind("samples"), MessageKind("front", at_rest=front_at_rest)),
)  # fmt: skip
