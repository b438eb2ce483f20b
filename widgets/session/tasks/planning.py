"""Find a first plan for a budget fast: a known plan, then simple policies, and only then a search."""

from __future__ import annotations

from dataclasses import replace
from time import sleep

from planner.jit import COMPILING
from planner.memory import parse_budget
from planner.plan import SwapPlan
from planner.swap import SwapSearch, search_swaps
from planner.units import bytes_label, format_bytes
from widgets.messages import Message, MessageKind, budget_at_rest, machine_message, search_message
from widgets.session.state import machines
from widgets.session.state.feature import Feature
from widgets.session.state.jobs import Job
from widgets.session.state.session_state import SessionState, sentence_of
from widgets.session.tasks.search_words import words

_LOOK_SECONDS = 0.03
_SIMPLE = "trying simple policies"
#: Time limit of the search for any plan where no simple policy finds one.
_FIRST_SECONDS = 5.0


def set_budget(session_state: SessionState, budget: str | int) -> str:
    """Plan for another budget; a running search is cancelled. Returns why there is no plan for it, or `""`.

    Raises:
        StowageError: the budget is invalid, or the session is closed.
    """
    with session_state.message_bus.lock:
        session_state.check_open()
        if session_state.feasibility is None:
            parse_budget(budget, 2**50)
            session_state.budget, session_state.follows_device = budget, False
            return ""
        size = session_state.feasibility.parse(budget)
        session_state.jobs.drop("plan", "search")
        drop_search(session_state)
        session_state.budget, session_state.follows_device = size, False
        sent = session_state.message_bus.latest("machine")
        if sent is not None and size > sent.content["slider_bytes"]:
            session_state.message_bus.publish(
                machine_message(session_state.feasibility, machines.choice(session_state.feasibility.machine), size)
            )
        begin(session_state)
        feasibility = session_state.feasibility
        return feasibility.why_impossible(size) if feasibility.verdict(size) == "impossible" else ""


def drop_search(session_state: SessionState) -> None:
    """Cancel the search at the current budget, and store it so that it can be resumed when the budget is set again."""
    if session_state.search is not None:
        session_state.search.cancel()
        list_best(session_state, session_state.search)
        if session_state.plan_cache is not None:
            session_state.plan_cache.keep(session_state.budget_bytes, session_state.method, session_state.search)
        session_state.search = None


def list_best(session_state: SessionState, search: SwapSearch) -> None:
    """List the best plan of the search at the current budget, which need not be the plan that is drawn."""
    best, plan_cache = search.best, session_state.plan_cache
    if best is None or plan_cache is None:
        return
    if session_state.plan_list.record_best(best, plan_cache, session_state.method):
        session_state.message_bus.publish(session_state.plans_words())


def take_search(session_state: SessionState) -> None:
    """Take the search that was stored for the current budget and method, if there is one."""
    plan_cache = session_state.plan_cache
    stored = None if plan_cache is None else plan_cache.search(session_state.budget_bytes, session_state.method)
    session_state.search = stored


def begin(session_state: SessionState, plan: SwapPlan | None = None) -> None:
    """Report at once whether the step fits, and find a plan in a thread.

    Args:
        session_state: the session state; the step must be captured.
        plan: a plan that is already known.
    """
    feasibility = session_state.feasibility
    assert feasibility is not None
    session_state.planned.clear()
    session_state.plan, session_state.bounds, session_state.baselines = None, None, {}
    session_state.chosen = session_state.without_plan = False
    budget = session_state.budget_bytes
    take_search(session_state)
    verdict = feasibility.verdict(budget)
    if verdict == "impossible":
        text = session_state.budget_words("impossible", "", feasibility.why_impossible(budget))
    else:
        known = session_state.plan_cache is not None and session_state.plan_cache.at(budget) is not None
        doing = "drawing the step" if verdict == "fits" else "drawing the plan" if known else _SIMPLE
        text = session_state.budget_words("planning", doing)
    session_state.message_bus.publish(text, idle(session_state))
    if session_state.jobs.start("plan", lambda job: _plan(session_state, job, plan)) is None:
        session_state.planned.set()  # the session is closed


def idle(session_state: SessionState) -> Message:
    """The message for a search that is not running or was never started."""
    feasibility = session_state.feasibility
    assert feasibility is not None
    budget = session_state.budget_bytes
    verdict = feasibility.verdict(budget)
    if verdict == "swap" and session_state.search is not None:
        state = session_state.search.progress.state
        return words(session_state, "cancelled" if state == "running" else state, 0.0)
    if verdict == "swap":
        return search_message(
            "idle", method=session_state.method, seed=session_state.seed, baselines=session_state.baselines,
            bound_seconds=session_state.bound_seconds, ideal_seconds=feasibility.ideal_seconds,
            sentence="Not searched yet. Simple policies always run first.",
        )  # fmt: skip
    if verdict == "fits":
        sentence = "Nothing to search: the whole step fits the budget, so no tensor is moved."
    else:
        least = bytes_label(feasibility.least_bytes, round_up=True)
        sentence = f"No plan can exist here. Raise the budget to {least} or more."
    return search_message(
        "nothing", method=session_state.method, seed=session_state.seed, ideal_seconds=feasibility.ideal_seconds,
        sentence=sentence,
    )  # fmt: skip


def _plan(session_state: SessionState, job: Job, plan: SwapPlan | None) -> None:
    feasibility, plan_cache = session_state.feasibility, session_state.plan_cache
    assert feasibility is not None
    assert plan_cache is not None
    budget = session_state.budget_bytes
    verdict = feasibility.verdict(budget)
    try:
        if plan is not None:
            plan_cache.add(plan)
            session_state.draw(job, plan)
        elif verdict == "fits":
            with session_state.message_bus.lock:
                if job.current:
                    session_state.bounds = (feasibility.ideal_seconds,) * 2
            session_state.draw(job, replace(feasibility.captured, budget_bytes=budget))
        elif verdict == "impossible":
            session_state.draw(
                job,
                feasibility.captured,
                placeholder=True,
                state="impossible",
                sentence=feasibility.why_impossible(budget),
            )
        else:
            known = plan_cache.fitting(budget)
            if known is not None and plan_cache.at(budget) is not None:
                session_state.draw(job, known)  # planned for before, as points of the front are
            elif known is not None:
                session_state.draw(job, known, state="planning", doing=_SIMPLE)
            _first_plan(session_state, job, known)
    except Exception as error:
        session_state.draw(job, feasibility.captured, placeholder=True, state="none", sentence=sentence_of(error))
    finally:
        with session_state.message_bus.lock:  # the budget may be changing, and then its plan is not there yet
            if job.current:
                session_state.planned.set()
    session_state.on_idle(session_state)


def _first_plan(session_state: SessionState, job: Job, known: SwapPlan | None) -> None:
    feasibility, plan_cache = session_state.feasibility, session_state.plan_cache
    assert feasibility is not None
    assert plan_cache is not None
    found = follow(session_state, job, "on-demand", None)
    best = found.best
    with session_state.message_bus.lock:
        if not job.current:
            return
        session_state.take_over(found)
        if not session_state.jobs.running("search"):
            session_state.message_bus.publish(idle(session_state))
    if best is None and known is None:
        session_state.report(job, session_state.budget_words("planning", "looking for any plan"))
        best = follow(session_state, job, "calendar", _FIRST_SECONDS).best
    if best is not None:
        plan_cache.add(best)
    if known is not None and (best is None or known.predicted.seconds <= best.predicted.seconds):
        session_state.report(job, session_state.budget_words("planned"))
        return
    if best is not None:
        session_state.draw(job, best)
        return
    least = plan_cache.least_known(session_state.budget_bytes)
    budget = format_bytes(session_state.budget_bytes)
    allow = f"; a plan is known at {format_bytes(least, round_up=True)}" if least is not None else ""
    session_state.draw(
        job, feasibility.captured, placeholder=True, state="none",
        sentence=f"No valid plan was found yet within {budget}: search for one{allow}.",
    )  # fmt: skip


def follow(
    session_state: SessionState, job: Job, method: str, time_limit: float | None, threads: int | None = None
) -> SwapSearch:
    """Search, and wait until the search ends, the job is asked to stop, or the time limit is reached.

    Raises:
        StowageError: no plan fits.
    """
    feasibility = session_state.feasibility
    assert feasibility is not None
    search = search_swaps(
        feasibility.graph, feasibility.machine, session_state.budget_bytes, seconds=feasibility.seconds, method=method,
        seed=session_state.seed, time_limit=time_limit, threads=threads,
    )  # fmt: skip
    reported = False
    while search.progress.state == "running":
        if not reported and search.progress.doing == COMPILING:
            reported = session_state.report(job, session_state.budget_words("planning", COMPILING))
        if job.stop.requested or (time_limit is not None and search.progress.seconds > 2 * time_limit):
            search.cancel()
        sleep(_LOOK_SECONDS)
    if search.progress.state == "failed":
        search.wait()  # raises the reason
    return search


FEATURE = Feature[None](
    "plan",
    kinds=(MessageKind("budget", at_rest=budget_at_rest), MessageKind("plan")),
    requests=dict.fromkeys(
        ("budget", "take"), lambda session_state, wanted: set_budget(session_state, int(wanted["bytes"]))
    ),
    jobs=("plan",),
)
