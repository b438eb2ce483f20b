"""How much a little more memory, or a little more bandwidth, would gain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf

from planner.cancel import CancelToken
from planner.errors import StowageError
from planner.graph import Graph
from planner.machine import Machine
from planner.plan import SwapPlan
from planner.progress import ShowProgress, reporting
from planner.swap.bounds.any_order import bound_of
from planner.swap.methods.eviction_portfolio import CLOSE
from planner.swap.problem.problem import Problem, Seconds
from planner.swap.search.budget_sweep import SECONDS_EACH, best_at
from planner.swap.search.inputs import make_problem
from planner.swap.simulate.streams import simulate
from planner.units import format_bytes, format_seconds

_GIB = 2**30
_GB = 10**9


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain from more of one resource.

    Args:
        what: the change in words, `"1 GiB more memory"`.
        step_seconds: of the best plan found with it.
        saved_seconds, percent: seconds saved per step, and that in percent of the step without it.
        most_seconds: the most seconds that can be saved, by the bound with it.
        words: a sentence.
    """

    what: str
    step_seconds: float
    saved_seconds: float
    percent: float
    most_seconds: float
    words: str


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The gains from more memory and from more bandwidth at a budget; `str()` gives two sentences."""

    budget_bytes: int
    step_seconds: float
    ideal_seconds: float
    memory: Gain
    bandwidth: Gain

    def __str__(self) -> str:
        return f"{self.memory.words}\n{self.bandwidth.words}"


def sensitivity(
    graph: Graph,
    machine: Machine,
    budget: str | int,
    *,
    memory: int = _GIB,
    bandwidth: float = _GB,
    seconds: Seconds | None = None,
    time_limit_each: float = SECONDS_EACH,
    seed: int = 0,
    progress: ShowProgress = True,
) -> Sensitivity:
    """Measure the gain from a little more memory, and from a little more bandwidth, by planning swaps again with each.

    Every plan found is timed in every scenario that it fits, so that luck in one search is not taken for a gain.

    Args:
        graph, machine: what is planned, and where.
        budget: device memory, as in `plan_swaps`.
        memory: additional bytes.
        bandwidth: additional bytes per second in one direction alone; both together rise by the same factor.
        seconds, time_limit_each, seed: as in `sweep`; there are three searches.
        progress: True shows progress, False shows nothing; a function is called with the share done, 0 to 1, and what
            is being done.

    Raises:
        StowageError: as in `plan_swaps`, or `memory` or `bandwidth` is not more than 0.
    """
    if not (memory > 0 and 0 < bandwidth < inf):
        raise StowageError(f"memory and bandwidth must be more than 0, got {memory} bytes and {bandwidth} bytes/s")
    with reporting(progress) as report:
        report(0.0, "laying out the graph")
        here, _ = make_problem(graph, machine, budget, None, seconds)
        roomy, _ = make_problem(graph, machine, here.budget + memory, None, here.seconds)
        link = machine.host_link
        factor = 1 + bandwidth / link.bandwidth
        faster = replace(
            machine,
            host_link=replace(link, bandwidth=link.bandwidth * factor, duplex_bandwidth=link.duplex_bandwidth * factor),
        )
        quick, _ = make_problem(graph, faster, here.budget, None, here.seconds)
        wanted = (here, "as it is"), (roomy, "with more memory"), (quick, "with more bandwidth")
        plans: list[SwapPlan] = []
        for done, (problem, what) in enumerate(wanted):
            known = _fastest(problem, plans)
            each = report.part(done / len(wanted), (done + 1) / len(wanted), f"planning {what}")
            best = best_at(problem, known, time_limit_each, seed, CancelToken(), each)
            assert best is not None, "a search that is not cancelled has a plan or an error"
            plans.append(best.plan)
    base, more_memory, more_bandwidth = (_fastest(problem, plans) for problem in (here, roomy, quick))
    assert base is not None, "its own plan fits"
    assert more_memory is not None, "a plan for less memory fits"
    assert more_bandwidth is not None, "bandwidth takes no memory"
    return Sensitivity(
        here.budget, base.predicted.seconds, here.ideal_seconds,
        _gain(f"{format_bytes(memory)} more memory", here, base, roomy, more_memory),
        _gain(f"{bandwidth / _GB:.3g} GB/s more bandwidth", here, base, quick, more_bandwidth),
    )  # fmt: skip


def _fastest(problem: Problem, plans: Iterable[SwapPlan]) -> SwapPlan | None:
    """The fastest of the plans that fit, timed for this problem."""
    fitting = [
        replace(plan, predicted=simulate(plan, problem.graph, problem.machine, problem.seconds))
        for plan in plans
        if plan.peak_bytes <= problem.arena_budget
    ]
    return min(fitting, key=lambda plan: plan.predicted.seconds, default=None)


def _gain(what: str, here: Problem, base: SwapPlan, there: Problem, better: SwapPlan) -> Gain:
    before, after = base.predicted.seconds, better.predicted.seconds
    saved = max(0.0, before - after)
    most = max(saved, before - bound_of(there), 0.0)
    percent = 100 * saved / before if before else 0.0
    if saved > before * (CLOSE - 1):
        rest = f", and {format_seconds(most)} at most could be saved" if most > CLOSE * saved else ""
        words = f"{what} saves {format_seconds(saved)} of {format_seconds(before)} per step ({percent:.2g} %){rest}."
    elif before <= here.ideal_seconds * CLOSE:
        words = f"{what} buys nothing: the step already takes its ideal time of {format_seconds(here.ideal_seconds)}."
    elif most <= before * (CLOSE - 1):
        words = f"{what} buys nothing: no plan with it is faster than the {format_seconds(before)} of this one."
    else:
        words = (
            f"{what} buys nothing that the search has found: the step still takes {format_seconds(before)}, "
            f"and {format_seconds(most)} at most could be saved."
        )
    return Gain(what, after, saved, percent, most, words)
