"""A first plan for a budget, fast: what is known already, what simple policies reach, and only then a search."""

from __future__ import annotations

from dataclasses import replace
from time import sleep

from planner.kernels import COMPILING
from planner.memory import parse_budget
from planner.plan import SwapPlan
from planner.swap import SwapSearch, search_swaps
from planner.units import format_bytes
from widgets.canvas.columns import Message
from widgets.canvas.machine_message import machine_message
from widgets.canvas.search_message import search_message
from widgets.session import machines
from widgets.session.core import Core, sentence_of
from widgets.session.jobs import Job
from widgets.session.search_words import words

_LOOK_SECONDS = 0.03
#: For how long to look for any plan where no simple policy has one.
_FIRST_SECONDS = 5.0


def set_budget(core: Core, budget: str | int) -> None:
    """Plan for another budget; a search that is at work is cancelled.

    Raises:
        StowageError: it is no amount, or all was closed.
    """
    with core.outbox.turn:
        core.check_open()
        if core.ground is None:
            parse_budget(budget, 2**50)
            core.budget, core.follows_device = budget, False
            return
        size = parse_budget(budget, core.ground.peak_bytes)
        core.jobs.drop("plan", "search")
        drop_search(core)
        core.budget, core.follows_device = size, False
        sent = core.outbox.latest("machine")
        if sent is not None and size > sent.content["slider_bytes"]:
            core.outbox.tell(machine_message(core.ground, machines.choice(core.ground.machine), size))
        begin(core)


def drop_search(core: Core) -> None:
    """Cancel the search of the budget that is left; what it has found stays, and it is resumed where one comes back."""
    if core.search is not None:
        core.search.cancel()
        if core.shelf is not None:
            core.shelf.keep(core.budget_bytes, core.search)
        core.search = None


def begin(core: Core, plan: SwapPlan | None = None) -> None:
    """Say at once whether the step fits, and find a plan in a thread.

    Args:
        core: with a ground.
        plan: one that is known already.
    """
    ground = core.ground
    assert ground is not None
    core.planned.clear()
    core.plan, core.bound_seconds, core.baselines = None, None, {}
    budget = core.budget_bytes
    core.search = core.shelf.search(budget) if core.shelf is not None else None
    verdict = ground.verdict(budget)
    if verdict == "impossible":
        said = core.budget_words("impossible", "", ground.why_impossible(budget))
    else:
        said = core.budget_words("planning", "drawing the step" if verdict == "fits" else "trying simple policies")
    core.outbox.tell(said, idle(core))
    if core.jobs.start("plan", lambda job: _plan(core, job, plan)) is None:
        core.planned.set()  # all is closed


def idle(core: Core) -> Message:
    """The message on a search that is not at work, or was not begun."""
    ground = core.ground
    assert ground is not None
    budget = core.budget_bytes
    verdict = ground.verdict(budget)
    if verdict == "swap" and core.search is not None:
        return words(core, "cancelled", 0.0)
    if verdict == "swap":
        return search_message(
            "idle", seed=core.seed, baselines=core.baselines, bound_seconds=core.bound_seconds,
            ideal_seconds=ground.ideal_seconds, sentence="Not searched yet. Simple policies always run first.",
        )  # fmt: skip
    if verdict == "fits":
        sentence = "Nothing to search: the whole step fits the budget, so no tensor is moved."
    else:
        sentence = f"No plan can exist here. Raise the budget to {format_bytes(ground.least_bytes)} or more."
    return search_message("nothing", seed=core.seed, ideal_seconds=ground.ideal_seconds, sentence=sentence)


def _plan(core: Core, job: Job, plan: SwapPlan | None) -> None:
    ground, shelf = core.ground, core.shelf
    assert ground is not None
    assert shelf is not None
    budget = core.budget_bytes
    verdict = ground.verdict(budget)
    try:
        if plan is not None:
            shelf.add(plan)
            core.draw(job, plan)
        elif verdict == "fits":
            core.bound_seconds = ground.ideal_seconds
            core.draw(job, replace(ground.captured, budget_bytes=budget))
        elif verdict == "impossible":
            core.draw(job, ground.captured, stand_in=True, state="impossible", sentence=ground.why_impossible(budget))
        else:
            known = shelf.fitting(budget)
            if known is not None:
                core.draw(job, known, state="planning", doing="trying simple policies")
            _first_plan(core, job, known)
    except Exception as error:
        core.draw(job, ground.captured, stand_in=True, state="none", sentence=sentence_of(error))
    finally:
        if job.current:
            core.planned.set()
    core.idle(core)


def _first_plan(core: Core, job: Job, known: SwapPlan | None) -> None:
    ground, shelf = core.ground, core.shelf
    assert ground is not None
    assert shelf is not None
    found = follow(core, job, "on-demand", None)
    best = found.best
    with core.outbox.turn:
        if not job.current:
            return
        core.bound_seconds, core.baselines = found.progress.bound_seconds, found.baselines
        if not core.jobs.running("search"):
            core.outbox.tell(idle(core))
    if best is None and known is None:
        core.report(job, core.budget_words("planning", "looking for any plan"))
        best = follow(core, job, "calendar", _FIRST_SECONDS).best
    if best is not None:
        shelf.add(best)
    if known is not None and (best is None or known.predicted.seconds <= best.predicted.seconds):
        core.report(job, core.budget_words("planned"))
        return
    if best is not None:
        core.draw(job, best)
        return
    least = shelf.least_known(core.budget_bytes)
    allow = f"; a plan is known at {format_bytes(least)}" if least is not None else ""
    core.draw(
        job, ground.captured, stand_in=True, state="none",
        sentence=f"No valid plan was found yet within {format_bytes(core.budget_bytes)}: search for one{allow}.",
    )  # fmt: skip


def follow(core: Core, job: Job, method: str, time_limit: float | None, threads: int | None = None) -> SwapSearch:
    """Search and wait for the end of it, or until the job is to stop, or until the time is up.

    Raises:
        StowageError: no plan fits.
    """
    ground = core.ground
    assert ground is not None
    search = search_swaps(
        ground.graph, ground.machine, core.budget_bytes, seconds=ground.seconds, method=method, seed=core.seed,
        time_limit=time_limit, threads=threads,
    )  # fmt: skip
    told = False
    while search.progress.state == "running":
        if not told and search.progress.doing == COMPILING:
            told = core.report(job, core.budget_words("planning", COMPILING))
        if job.stopped() or (time_limit is not None and search.progress.seconds > 2 * time_limit):
            search.cancel()
        sleep(_LOOK_SECONDS)
    if search.progress.state == "failed":
        search.wait()  # which says why
    return search
