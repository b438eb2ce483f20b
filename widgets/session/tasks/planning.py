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
#: Time limit of the search for any plan where no simple policy finds one.
_FIRST_SECONDS = 5.0


def set_budget(core: SessionState, budget: str | int) -> None:
    """Plan for another budget; a running search is cancelled.

    Raises:
        StowageError: the budget is invalid, or the session is closed.
    """
    with core.message_bus.lock:
        core.check_open()
        if core.feasibility is None:
            parse_budget(budget, 2**50)
            core.budget, core.follows_device = budget, False
            return
        size = parse_budget(budget, core.feasibility.peak_bytes)
        core.jobs.drop("plan", "search")
        drop_search(core)
        core.budget, core.follows_device = size, False
        sent = core.message_bus.latest("machine")
        if sent is not None and size > sent.content["slider_bytes"]:
            core.message_bus.publish(machine_message(core.feasibility, machines.choice(core.feasibility.machine), size))
        begin(core)


def drop_search(core: SessionState) -> None:
    """Cancel the search at the current budget, and store it so that it can be resumed when the budget is set again."""
    if core.search is not None:
        core.search.cancel()
        if core.plan_cache is not None:
            core.plan_cache.keep(core.budget_bytes, core.search)
        core.search = None


def begin(core: SessionState, plan: SwapPlan | None = None) -> None:
    """Report at once whether the step fits, and find a plan in a thread.

    Args:
        core: the session state; the step must be captured.
        plan: a plan that is already known.
    """
    feasibility = core.feasibility
    assert feasibility is not None
    core.planned.clear()
    core.plan, core.bound_seconds, core.baselines = None, None, {}
    budget = core.budget_bytes
    core.search = core.plan_cache.search(budget) if core.plan_cache is not None else None
    verdict = feasibility.verdict(budget)
    if verdict == "impossible":
        said = core.budget_words("impossible", "", feasibility.why_impossible(budget))
    else:
        said = core.budget_words("planning", "drawing the step" if verdict == "fits" else "trying simple policies")
    core.message_bus.publish(said, idle(core))
    if core.jobs.start("plan", lambda job: _plan(core, job, plan)) is None:
        core.planned.set()  # the session is closed


def idle(core: SessionState) -> Message:
    """The message for a search that is not running or was never started."""
    feasibility = core.feasibility
    assert feasibility is not None
    budget = core.budget_bytes
    verdict = feasibility.verdict(budget)
    if verdict == "swap" and core.search is not None:
        return words(core, "cancelled", 0.0)
    if verdict == "swap":
        return search_message(
            "idle", seed=core.seed, baselines=core.baselines, bound_seconds=core.bound_seconds,
            ideal_seconds=feasibility.ideal_seconds, sentence="Not searched yet. Simple policies always run first.",
        )  # fmt: skip
    if verdict == "fits":
        sentence = "Nothing to search: the whole step fits the budget, so no tensor is moved."
    else:
        sentence = f"No plan can exist here. Raise the budget to {bytes_label(feasibility.least_bytes)} or more."
    return search_message("nothing", seed=core.seed, ideal_seconds=feasibility.ideal_seconds, sentence=sentence)


def _plan(core: SessionState, job: Job, plan: SwapPlan | None) -> None:
    feasibility, plan_cache = core.feasibility, core.plan_cache
    assert feasibility is not None
    assert plan_cache is not None
    budget = core.budget_bytes
    verdict = feasibility.verdict(budget)
    try:
        if plan is not None:
            plan_cache.add(plan)
            core.draw(job, plan)
        elif verdict == "fits":
            core.bound_seconds = feasibility.ideal_seconds
            core.draw(job, replace(feasibility.captured, budget_bytes=budget))
        elif verdict == "impossible":
            core.draw(
                job,
                feasibility.captured,
                placeholder=True,
                state="impossible",
                sentence=feasibility.why_impossible(budget),
            )
        else:
            known = plan_cache.fitting(budget)
            if known is not None:
                core.draw(job, known, state="planning", doing="trying simple policies")
            _first_plan(core, job, known)
    except Exception as error:
        core.draw(job, feasibility.captured, placeholder=True, state="none", sentence=sentence_of(error))
    finally:
        if job.current:
            core.planned.set()
    core.on_idle(core)


def _first_plan(core: SessionState, job: Job, known: SwapPlan | None) -> None:
    feasibility, plan_cache = core.feasibility, core.plan_cache
    assert feasibility is not None
    assert plan_cache is not None
    found = follow(core, job, "on-demand", None)
    best = found.best
    with core.message_bus.lock:
        if not job.current:
            return
        core.bound_seconds, core.baselines = found.progress.bound_seconds, found.baselines
        if not core.jobs.running("search"):
            core.message_bus.publish(idle(core))
    if best is None and known is None:
        core.report(job, core.budget_words("planning", "looking for any plan"))
        best = follow(core, job, "calendar", _FIRST_SECONDS).best
    if best is not None:
        plan_cache.add(best)
    if known is not None and (best is None or known.predicted.seconds <= best.predicted.seconds):
        core.report(job, core.budget_words("planned"))
        return
    if best is not None:
        core.draw(job, best)
        return
    least = plan_cache.least_known(core.budget_bytes)
    allow = f"; a plan is known at {format_bytes(least)}" if least is not None else ""
    core.draw(
        job, feasibility.captured, placeholder=True, state="none",
        sentence=f"No valid plan was found yet within {format_bytes(core.budget_bytes)}: search for one{allow}.",
    )  # fmt: skip


def follow(
    core: SessionState, job: Job, method: str, time_limit: float | None, threads: int | None = None
) -> SwapSearch:
    """Search, and wait until the search ends, the job is asked to stop, or the time limit is reached.

    Raises:
        StowageError: no plan fits.
    """
    feasibility = core.feasibility
    assert feasibility is not None
    search = search_swaps(
        feasibility.graph, feasibility.machine, core.budget_bytes, seconds=feasibility.seconds, method=method,
        seed=core.seed, time_limit=time_limit, threads=threads,
    )  # fmt: skip
    told = False
    while search.progress.state == "running":
        if not told and search.progress.doing == COMPILING:
            told = core.report(job, core.budget_words("planning", COMPILING))
        if job.stop.requested or (time_limit is not None and search.progress.seconds > 2 * time_limit):
            search.cancel()
        sleep(_LOOK_SECONDS)
    if search.progress.state == "failed":
        search.wait()  # raises the reason
    return search


FEATURE = Feature[None](
    "plan",
    kinds=(MessageKind("budget", at_rest=budget_at_rest), MessageKind("plan")),
    requests=dict.fromkeys(("budget", "take"), lambda core, wanted: set_budget(core, int(wanted["bytes"]))),
    jobs=("plan",),
)
