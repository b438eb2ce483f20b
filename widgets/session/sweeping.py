"""What other budgets would cost: plans for a few of them, made while nothing else is at work."""

from __future__ import annotations

from dataclasses import replace
from time import sleep

import numpy as np

from planner.errors import StowageError
from planner.plan import SwapPlan
from planner.swap import SwapSearch, search_swaps
from planner.units import format_bytes
from widgets.canvas.machine_message import machine_message
from widgets.canvas.state_messages import front_message, samples_message
from widgets.session import machines, planning
from widgets.session.core import Core
from widgets.session.jobs import Job

_POINTS = 9
_SECONDS_EACH = 3.0
_LOOK_SECONDS = 0.05
_CLOSE = 1.0001
#: What goes before.
_AHEAD = ("capture", "machine", "plan", "search", "run")


def begin(core: Core) -> None:
    """Fill the curve over budgets, as soon as somebody looks on and nothing else is at work; once is enough."""
    with core.outbox.turn:
        if core.awake and core.ground is not None and not core.jobs.running("sweep") and _open(core):
            core.jobs.start("sweep", lambda job: _sweep(core, job))


def tell(core: Core, doing: str = "", share: float | None = None) -> None:
    """Tell the curve and the front as far as they are known."""
    with core.outbox.turn:
        if core.shelf is not None:
            core.outbox.tell(samples_message(core.shelf.samples()), front_message(core.shelf.rows(), doing, share))


def _budgets(core: Core) -> list[int]:
    """From the least to the peak, each the same factor above the one before, the coarse ones first."""
    ground = core.ground
    assert ground is not None
    if ground.least_bytes >= ground.peak_bytes:
        return []
    steps = np.geomspace(ground.least_bytes, ground.peak_bytes, _POINTS)[:-1]
    coarse = sorted(range(len(steps)), key=lambda at: -(at & -at) if at else -_POINTS)
    return list(dict.fromkeys(int(np.ceil(steps[at])) for at in coarse))


def _open(core: Core) -> list[int]:
    """The budgets that were not looked at."""
    shelf = core.shelf
    return [] if shelf is None else [budget for budget in _budgets(core) if not shelf.seen(budget)]


def _sweep(core: Core, job: Job) -> None:
    shelf = core.shelf
    assert shelf is not None
    _find_least(core, job)
    every = _budgets(core)
    while (left := _open(core)) and not job.stopped():
        if core.jobs.running(*_AHEAD):
            sleep(_LOOK_SECONDS)
            continue
        budget = left[0]
        with core.outbox.turn:
            if not job.current:
                return
            tell(core, f"planning for {format_bytes(budget)}", 1 - len(left) / len(every))
        _look_at(core, job, budget)
    with core.outbox.turn:
        if job.current:
            tell(core)


def _find_least(core: Core, job: Job) -> None:
    """Find out what the least budget is, and plan again where the budget turns out to be none too small."""
    ground = core.ground
    assert ground is not None
    if ground.exact:
        return
    exact = ground.with_exact_least()
    with core.outbox.turn:
        if not job.current or core.ground is not ground:
            return
        core.ground = exact
        if exact.least_bytes < ground.least_bytes:
            core.outbox.tell(machine_message(exact, machines.choice(exact.machine), core.budget_bytes))
        if ground.verdict(core.budget_bytes) != exact.verdict(core.budget_bytes):
            planning.begin(core)


def _look_at(core: Core, job: Job, budget: int) -> None:
    """Find a plan for one budget, unless something else begins meanwhile: then it is looked at again later."""
    ground, shelf = core.ground, core.shelf
    assert ground is not None
    assert shelf is not None
    known = shelf.fitting(budget)
    if known is None or known.predicted.seconds > ground.ideal_seconds * _CLOSE:
        try:
            search = search_swaps(
                ground.graph, ground.machine, budget, seconds=ground.seconds, method="calendar", seed=core.seed,
                time_limit=_SECONDS_EACH, threads=1,
            )  # fmt: skip
        except StowageError:
            shelf.note(budget)
            return
        if not _ended(core, job, search):
            return
        known = min((plan for plan in (search.best, known) if plan is not None),
                    key=lambda plan: plan.predicted.seconds, default=None)  # fmt: skip
    with core.outbox.turn:
        shelf.note(budget)
        if known is None or not job.current:
            return
        shelf.add(replace(known, budget_bytes=budget))
    _draw_better(core, job)


def _draw_better(core: Core, sweep: Job) -> None:
    """Draw the fastest plan that is known to fit the budget: one for less memory may be faster than the first one."""
    with core.outbox.turn:
        shelf, drawn = core.shelf, core.plan
        if shelf is None or not sweep.current or core.run is not None or core.jobs.running(*_AHEAD):
            return
        best = shelf.fitting(core.budget_bytes)
        if best is not None and (drawn is None or best.predicted.seconds * _CLOSE < drawn.predicted.seconds):
            core.jobs.start("plan", lambda job: _draw(core, job, best))  # another budget takes its place


def _draw(core: Core, job: Job, plan: SwapPlan) -> None:
    core.draw(job, plan)


def _ended(core: Core, job: Job, search: SwapSearch) -> bool:
    """Wait for a search; False where something else came first."""
    while search.progress.state == "running":
        if job.stopped() or core.jobs.running(*_AHEAD):
            search.cancel()
            return False
        if search.progress.seconds > 2 * _SECONDS_EACH:
            search.cancel()
        sleep(_LOOK_SECONDS)
    return True
