"""A search that one watches: its progress several times a second, every better plan, cancel and resume."""

from __future__ import annotations

from collections import deque
from time import perf_counter, sleep

from planner.errors import StowageError
from planner.plan import SwapPlan
from planner.swap import SwapSearch, search_swaps
from widgets.canvas.search_message import search_message
from widgets.session import sweeping
from widgets.session.core import Core, sentence_of
from widgets.session.jobs import Job
from widgets.session.search_words import words

LIMIT_SECONDS = 30.0
_EVERY_SECONDS = 0.22
_LOOK_SECONDS = 0.02
#: A plan is packed for the page no more often than that this takes so much of the time.
_PACKING_SHARE = 0.04


def begin(core: Core, seconds: float | None = LIMIT_SECONDS) -> None:
    """Search within the budget; does nothing while a search is at work.

    Args:
        core: with a ground.
        seconds: after which it pauses; None for no limit.

    Raises:
        StowageError: there is nothing to search for, or all was closed.
    """
    with core.outbox.turn:
        core.check_open()
        if core.ground is None:
            raise StowageError("there is nothing to search yet: wait until the step is captured")
        verdict = core.ground.verdict(core.budget_bytes)
        if verdict != "swap":
            why = "the step fits" if verdict == "fits" else "no plan can exist within this budget"
            raise StowageError(f"there is nothing to search for: {why}")
        if core.jobs.running("search"):
            return
        core.jobs.drop("plan")  # the search begins with the same policies
        core.planned.set()
        if core.search is not None:
            core.search.cancel()
        core.search = None
        _start(core, seconds, seconds)


def resume(core: Core, seconds: float | None = LIMIT_SECONDS) -> None:
    """Go on with the search that was cancelled or has paused; without one, begin.

    Raises:
        StowageError: as `begin`.
    """
    with core.outbox.turn:
        core.check_open()
        if core.search is None:
            begin(core, seconds)
        elif not core.jobs.running("search"):
            _start(core, seconds, None if seconds is None else core.search.progress.seconds + seconds)


def begun(core: Core) -> SwapSearch | None:
    """The search, None where there is none; one that is asked for exists once its graph is laid out."""
    with core.outbox.turn:
        job = core.jobs.at_work("search")
        if core.search is not None or job is None:
            return core.search
    job.under_way.wait()
    return core.search


def cancel(core: Core) -> None:
    """Have the search stop; what it found stays."""
    with core.outbox.turn:
        if core.jobs.cancel("search"):
            if core.search is not None:
                core.search.cancel()
            core.outbox.tell(words(core, "cancelled", 0.0))


def _start(core: Core, seconds: float | None, limit: float | None) -> None:
    core.search_limit = limit
    core.outbox.tell(words(core, "running", 0.0))
    core.jobs.start("search", lambda job: _search(core, job, seconds))


def _search(core: Core, job: Job, seconds: float | None) -> None:
    ground, search = core.ground, core.search
    assert ground is not None
    try:
        if search is None:
            search = search_swaps(
                ground.graph, ground.machine, core.budget_bytes, seconds=ground.seconds, seed=core.seed,
                time_limit=seconds,
            )  # fmt: skip
            with core.outbox.turn:  # whoever resumes it waits until it is cancelled
                if job.current:
                    core.search = search
                if job.stopped():
                    search.cancel()
            job.under_way.set()
        else:
            search.resume(time_limit=seconds)
            with core.outbox.turn:
                if job.stopped() and job.current:
                    search.cancel()
        _follow(core, job, search)
    except Exception as error:
        core.report(job, search_message("failed", seed=core.seed, sentence=sentence_of(error)))
    core.idle(core)


def _follow(core: Core, job: Job, search: SwapSearch) -> None:
    recent: deque[tuple[float, int]] = deque(maxlen=6)
    drawn: SwapPlan | None = None
    not_before = 0.0
    while True:
        running = search.progress.state == "running"
        recent.append((perf_counter(), search.progress.evaluations))
        best = search.best
        if best is not None and best is not drawn and (perf_counter() >= not_before or not running):
            drawn = best
            _take(core, job, search, best)
            not_before = perf_counter() + core.packing_seconds / _PACKING_SHARE
        with core.outbox.turn:
            state = "cancelled" if job.stopped() else "running" if running else search.progress.state
            core.report(job, words(core, state, _rate(recent)))
        if not running or not job.current:
            break
        _rest(job, search)
    with core.outbox.turn:
        if job.current and core.plan is None:
            core.outbox.tell(core.budget_words("none", "", "No valid plan was found yet: resume the search."))


def _rest(job: Job, search: SwapSearch) -> None:
    """Until it is time to look again, or the search is over."""
    until = perf_counter() + _EVERY_SECONDS
    while perf_counter() < until and search.progress.state == "running":
        if job.stopped():
            sleep(_LOOK_SECONDS)
        elif job.stop.wait(_EVERY_SECONDS / 4):
            return


def _take(core: Core, job: Job, search: SwapSearch, best: SwapPlan) -> None:
    """Put a better plan on the shelf, and draw it unless a better one is drawn."""
    with core.outbox.turn:
        if not job.current or core.shelf is None:
            return
        core.bound_seconds, core.baselines = search.progress.bound_seconds, search.baselines
        core.shelf.add(best)
        better = core.plan is None or best.predicted.seconds < core.plan.predicted.seconds
        sweeping.tell(core)
    if better:
        core.draw(job, best)


def _rate(recent: deque[tuple[float, int]]) -> float:
    (first, before), (last, after) = recent[0], recent[-1]
    return (after - before) / (last - first) if last > first else 0.0
