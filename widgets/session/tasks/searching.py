"""Run a search and report its progress several times a second and every better plan; cancel and resume it."""

from __future__ import annotations

from collections import deque
from time import perf_counter, sleep

from planner.errors import StowageError
from planner.plan import SwapPlan
from planner.swap import SwapSearch, check_choice, search_swaps
from widgets.messages import MessageKind, search_at_rest
from widgets.session.state.feature import Feature
from widgets.session.state.jobs import Job
from widgets.session.state.session_state import SessionState, sentence_of
from widgets.session.tasks import planning, sweeping
from widgets.session.tasks.search_words import words

LIMIT_SECONDS = 30.0
_EVERY_SECONDS = 0.22
_LOOK_SECONDS = 0.02
#: Largest share of the time spent on packing plans for the page.
_PACKING_SHARE = 0.04


def resume(session_state: SessionState, seconds: float | None = LIMIT_SECONDS) -> None:
    """Go on with the search at this budget by this method, or begin it; does nothing while it runs.

    Args:
        session_state: the session state.
        seconds: the search pauses after this time; None for no limit.

    Raises:
        StowageError: there is nothing to search for, or the session is closed.
    """
    with session_state.message_bus.lock:
        session_state.check_open()
        if _under_way(session_state):
            return
        search, spent = session_state.search, 0.0
        if search is not None:
            spent = search.progress.seconds
        else:
            _check_searchable(session_state)
            session_state.jobs.drop("plan")  # the search tries the same policies first
            session_state.planned.set()
        _start(session_state, seconds, None if seconds is None else spent + seconds)


def choose_method(session_state: SessionState, method: str, seconds: float | None = LIMIT_SECONDS) -> None:
    """Search by another method from now on; a search that is running gives way to one by this method.

    Args:
        session_state: the session state.
        method: one of `planner.swap.METHODS`.
        seconds: the search that takes over pauses after this time; None for no limit.

    Raises:
        StowageError: there is no such method, or the session is closed.
    """
    check_choice(method, session_state.seed)
    with session_state.message_bus.lock:
        session_state.check_open()
        if method == session_state.method:
            return
        running = _under_way(session_state)
        session_state.jobs.drop("search")
        planning.drop_search(session_state)
        session_state.method = method
        if session_state.feasibility is None:
            return
        planning.take_search(session_state)
        session_state.message_bus.publish(planning.idle(session_state))
        if running:
            resume(session_state, seconds)
        elif (best := _better_known(session_state)) is not None:
            session_state.jobs.start("plan", lambda job: _draw(session_state, job, best))


def begun(session_state: SessionState) -> SwapSearch | None:
    """The search, or None; blocks while a requested search is being created or resumed."""
    job = session_state.jobs.running_job("search")
    if job is not None:
        job.under_way.wait()
    return session_state.search


def catch_up(session_state: SessionState) -> None:
    """List and show what a search that has ended came to, which its job does only when it looks next."""
    with session_state.message_bus.lock:
        job, search = session_state.jobs.running_job("search"), session_state.search
    if job is not None and search is not None and search.progress.state != "running" and search.best is not None:
        _take(session_state, job, search, search.best)


def cancel(session_state: SessionState) -> None:
    """Stop the search; its plans are kept."""
    with session_state.message_bus.lock:
        if session_state.jobs.cancel("search"):
            if session_state.search is not None:
                session_state.search.cancel()
            session_state.message_bus.publish(words(session_state, "cancelled", 0.0))


def _check_searchable(session_state: SessionState) -> None:
    """Refuse a search that can find nothing.

    Raises:
        StowageError: the step is not captured yet, it fits the budget, or no plan does.
    """
    if session_state.feasibility is None:
        raise StowageError("there is nothing to search yet: wait until the step is captured")
    verdict = session_state.feasibility.verdict(session_state.budget_bytes)
    if verdict != "swap":
        why = "the step fits" if verdict == "fits" else "no plan can exist within this budget"
        raise StowageError(f"there is nothing to search for: {why}")


def _under_way(session_state: SessionState) -> bool:
    """Whether a search goes on or is being started; not one that has paused though its job has not seen it yet."""
    job, search = session_state.jobs.running_job("search"), session_state.search
    if job is None or job.stop.requested:
        return False
    return not job.under_way.is_set() or (search is not None and search.running)


def _start(session_state: SessionState, seconds: float | None, limit: float | None) -> None:
    session_state.search_limit = limit
    # first the job: an interrupt may come as soon as the search is said to run, and has to find it
    session_state.jobs.start("search", lambda job: _search(session_state, job, seconds))
    session_state.message_bus.publish(words(session_state, "running", 0.0))


def _search(session_state: SessionState, job: Job, seconds: float | None) -> None:
    feasibility, search = session_state.feasibility, session_state.search
    assert feasibility is not None
    try:
        if search is None:
            search = search_swaps(
                feasibility.graph, feasibility.machine, session_state.budget_bytes, seconds=feasibility.seconds,
                method=session_state.method, seed=session_state.seed, time_limit=seconds,
            )  # fmt: skip
            with session_state.message_bus.lock:  # a concurrent `resume` must wait until the search is cancelled
                if job.current:
                    session_state.search = search
                if job.stop.requested:
                    search.cancel()
        else:
            search.resume(time_limit=seconds)
            with session_state.message_bus.lock:
                if job.stop.requested and job.current:
                    search.cancel()
        job.under_way.set()
        if (best := _better_known(session_state)) is not None:
            session_state.draw(job, best)  # of the search that this one takes over from
        _follow(session_state, job, search)
    except Exception as error:
        session_state.report(job, words(session_state, "failed", 0.0, sentence_of(error)))
    session_state.on_idle(session_state)


def _follow(session_state: SessionState, job: Job, search: SwapSearch) -> None:
    recent: deque[tuple[float, int]] = deque(maxlen=6)
    drawn: SwapPlan | None = None
    not_before = 0.0
    while True:
        running = search.progress.state == "running"
        recent.append((perf_counter(), search.progress.evaluations))
        best = search.best
        if best is not None and best is not drawn and (perf_counter() >= not_before or not running):
            drawn = best
            _take(session_state, job, search, best)
            not_before = perf_counter() + session_state.packing_seconds / _PACKING_SHARE
        with session_state.message_bus.lock:
            state = "cancelled" if job.stop.requested else "running" if running else search.progress.state
            session_state.report(job, words(session_state, state, _rate(recent)))
        if not running or not job.current:
            break
        _rest(job, search)
    with session_state.message_bus.lock:
        if job.current and session_state.plan is None:
            session_state.message_bus.publish(
                session_state.budget_words("none", "", "No valid plan was found yet: resume the search.")
            )


def _better_known(session_state: SessionState) -> SwapPlan | None:
    """The fastest known plan within the budget if it is faster than the one shown."""
    with session_state.message_bus.lock:
        plan_cache, drawn = session_state.plan_cache, session_state.plan
        best = None if plan_cache is None else plan_cache.fitting(session_state.budget_bytes)
        if best is None or (drawn is not None and drawn.predicted.seconds <= best.predicted.seconds):
            return None
        return best


def _draw(session_state: SessionState, job: Job, plan: SwapPlan) -> None:
    session_state.draw(job, plan)


def _rest(job: Job, search: SwapSearch) -> None:
    """Wait until the next report is due or the search is over."""
    until = perf_counter() + _EVERY_SECONDS
    while perf_counter() < until and search.progress.state == "running":
        if job.stop.requested:
            sleep(_LOOK_SECONDS)
        elif job.stop.wait(_EVERY_SECONDS / 4):
            return


def _take(session_state: SessionState, job: Job, search: SwapSearch, best: SwapPlan) -> None:
    """Add a better plan to the plan cache and to the list, and show it unless a better one is shown."""
    with session_state.message_bus.lock:
        if not job.current or session_state.plan_cache is None:
            return
        session_state.take_over(search)
        session_state.plan_cache.add(best)
        better = session_state.plan is None or best.predicted.seconds < session_state.plan.predicted.seconds
        if not better:
            planning.list_best(session_state, search)
        sweeping.publish(session_state)
    if better:
        session_state.draw(job, best, searched=True)


def _rate(recent: deque[tuple[float, int]]) -> float:
    (first, before), (last, after) = recent[0], recent[-1]
    return (after - before) / (last - first) if last > first else 0.0


def _close(session_state: SessionState) -> None:
    with session_state.message_bus.lock:
        search, session_state.search = session_state.search, None
    if search is not None:
        search.cancel()


FEATURE = Feature[None](
    "search",
    kinds=(MessageKind("search", at_rest=search_at_rest),),
    requests={
        "search": lambda session_state, _: resume(session_state),
        "cancel": lambda session_state, _: cancel(session_state),
        "resume": lambda session_state, _: resume(session_state),
        "method": lambda session_state, wanted: choose_method(session_state, str(wanted["method"])),
    },
    jobs=("search",),
    cancel=cancel,
    close=_close,
)
