"""Run a search and report its progress several times a second and every better plan; cancel and resume it."""

from __future__ import annotations

from collections import deque
from time import perf_counter, sleep

from planner.errors import StowageError
from planner.plan import SwapPlan
from planner.swap import SwapSearch, search_swaps
from widgets.messages import MessageKind, search_at_rest, search_message
from widgets.session.state.feature import Feature
from widgets.session.state.jobs import Job
from widgets.session.state.session_state import SessionState, sentence_of
from widgets.session.tasks import sweeping
from widgets.session.tasks.search_words import words

LIMIT_SECONDS = 30.0
_EVERY_SECONDS = 0.22
_LOOK_SECONDS = 0.02
#: Largest share of the time spent on packing plans for the page.
_PACKING_SHARE = 0.04


def begin(core: SessionState, seconds: float | None = LIMIT_SECONDS) -> None:
    """Search within the budget; does nothing while a search is running.

    Args:
        core: the session state.
        seconds: the search pauses after this time; None for no limit.

    Raises:
        StowageError: there is nothing to search for, or the session is closed.
    """
    with core.message_bus.lock:
        core.check_open()
        if core.feasibility is None:
            raise StowageError("there is nothing to search yet: wait until the step is captured")
        verdict = core.feasibility.verdict(core.budget_bytes)
        if verdict != "swap":
            why = "the step fits" if verdict == "fits" else "no plan can exist within this budget"
            raise StowageError(f"there is nothing to search for: {why}")
        if core.jobs.running("search"):
            return
        core.jobs.drop("plan")  # the search tries the same policies first
        core.planned.set()
        if core.search is not None:
            core.search.cancel()
        core.search = None
        _start(core, seconds, seconds)


def resume(core: SessionState, seconds: float | None = LIMIT_SECONDS) -> None:
    """Resume the search that was cancelled or has paused; start one if there is none.

    Raises:
        StowageError: as `begin` does.
    """
    with core.message_bus.lock:
        core.check_open()
        if core.search is None:
            begin(core, seconds)
        elif not core.jobs.running("search"):
            _start(core, seconds, None if seconds is None else core.search.progress.seconds + seconds)


def begun(core: SessionState) -> SwapSearch | None:
    """The search, or None; blocks while a requested search is being created."""
    with core.message_bus.lock:
        job = core.jobs.at_work("search")
        if core.search is not None or job is None:
            return core.search
    job.under_way.wait()
    return core.search


def cancel(core: SessionState) -> None:
    """Stop the search; its plans are kept."""
    with core.message_bus.lock:
        if core.jobs.cancel("search"):
            if core.search is not None:
                core.search.cancel()
            core.message_bus.publish(words(core, "cancelled", 0.0))


def _start(core: SessionState, seconds: float | None, limit: float | None) -> None:
    core.search_limit = limit
    core.message_bus.publish(words(core, "running", 0.0))
    core.jobs.start("search", lambda job: _search(core, job, seconds))


def _search(core: SessionState, job: Job, seconds: float | None) -> None:
    feasibility, search = core.feasibility, core.search
    assert feasibility is not None
    try:
        if search is None:
            search = search_swaps(
                feasibility.graph, feasibility.machine, core.budget_bytes, seconds=feasibility.seconds, seed=core.seed,
                time_limit=seconds,
            )  # fmt: skip
            with core.message_bus.lock:  # a concurrent `resume` must wait until the search is cancelled
                if job.current:
                    core.search = search
                if job.stop.requested:
                    search.cancel()
            job.under_way.set()
        else:
            search.resume(time_limit=seconds)
            with core.message_bus.lock:
                if job.stop.requested and job.current:
                    search.cancel()
        _follow(core, job, search)
    except Exception as error:
        core.report(job, search_message("failed", seed=core.seed, sentence=sentence_of(error)))
    core.on_idle(core)


def _follow(core: SessionState, job: Job, search: SwapSearch) -> None:
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
        with core.message_bus.lock:
            state = "cancelled" if job.stop.requested else "running" if running else search.progress.state
            core.report(job, words(core, state, _rate(recent)))
        if not running or not job.current:
            break
        _rest(job, search)
    with core.message_bus.lock:
        if job.current and core.plan is None:
            core.message_bus.publish(core.budget_words("none", "", "No valid plan was found yet: resume the search."))


def _rest(job: Job, search: SwapSearch) -> None:
    """Wait until the next report is due or the search is over."""
    until = perf_counter() + _EVERY_SECONDS
    while perf_counter() < until and search.progress.state == "running":
        if job.stop.requested:
            sleep(_LOOK_SECONDS)
        elif job.stop.wait(_EVERY_SECONDS / 4):
            return


def _take(core: SessionState, job: Job, search: SwapSearch, best: SwapPlan) -> None:
    """Add a better plan to the plan cache, and show it unless a better one is shown."""
    with core.message_bus.lock:
        if not job.current or core.plan_cache is None:
            return
        core.bound_seconds, core.baselines = search.progress.bound_seconds, search.baselines
        core.plan_cache.add(best)
        better = core.plan is None or best.predicted.seconds < core.plan.predicted.seconds
        sweeping.publish(core)
    if better:
        core.draw(job, best)


def _rate(recent: deque[tuple[float, int]]) -> float:
    (first, before), (last, after) = recent[0], recent[-1]
    return (after - before) / (last - first) if last > first else 0.0


def _close(core: SessionState) -> None:
    with core.message_bus.lock:
        search, core.search = core.search, None
    if search is not None:
        search.cancel()


FEATURE = Feature[None](
    "search",
    kinds=(MessageKind("search", at_rest=search_at_rest),),
    requests={
        "search": lambda core, _: begin(core),
        "cancel": lambda core, _: cancel(core),
        "resume": lambda core, _: resume(core),
    },
    jobs=("search",),
    cancel=cancel,
    close=_close,
)
