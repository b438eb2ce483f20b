"""The driver of a search: the baselines first, then one method after another, a search step at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from types import MappingProxyType

import numpy as np

from planner.errors import StowageError, did_you_mean
from planner.plan import SwapPlan, validate
from planner.search import STOPPED
from planner.swap.baselines.registry import BASELINES
from planner.swap.bounds.any_order import bound_of, recomputing_bound_of
from planner.swap.methods.annealing import Annealing
from planner.swap.methods.eviction_portfolio import CLOSE, Portfolio
from planner.swap.methods.local_search import LocalSearch
from planner.swap.methods.method import Each, Item, Method, Result, SearchContext, SearchStep
from planner.swap.methods.recomputing import Recomputing, Refining, without_copies
from planner.swap.methods.swapadvisor import Genetic
from planner.swap.problem.problem import Problem
from planner.swap.schedule.budget_feasibility import BudgetTooSmallError
from planner.units import format_bytes

Factory = Callable[[SearchContext], Method]

#: The methods that each choice runs in turn, after the baselines.
METHODS: Mapping[str, tuple[Factory, ...]] = MappingProxyType(
    {
        "auto": (Portfolio, without_copies, Recomputing, Refining, LocalSearch, Annealing),
        "swap": (Portfolio, LocalSearch, Annealing),
        "recompute": (without_copies,),
        "joint": (Recomputing, Refining),
        "calendar": (Portfolio,),
        "swapadvisor": (Genetic,),
        "on-demand": (),
    }
)
#: The method of a search that is not told another.
DEFAULT = "swap"
#: The methods whose plans may run ops again.
RECOMPUTING = frozenset({"auto", "recompute", "joint"})


def _sparing(factor: float) -> Factory:
    """A portfolio that prefers or avoids evicting persistent storages, which take host memory for the whole step."""

    def make(context: SearchContext) -> Method:
        return Portfolio(context, np.where(context.problem.arrays.persistent, factor, 1.0))

    return make


#: Tried in addition if no plan keeps to the host budget.
_SPARING = (_sparing(1 / 64), _sparing(64.0))


def check_choice(method: str, seed: int) -> None:
    """Check a method and a seed.

    Raises:
        StowageError: the method is unknown, or the seed is negative.
    """
    if method not in METHODS:
        raise StowageError(
            f'"{method}" is not a search method; choose one of {", ".join(METHODS)}{did_you_mean(method, METHODS)}'
        )
    if seed < 0:
        raise StowageError(f"seed must be a whole number of 0 or more, got {seed}")


@dataclass(frozen=True, slots=True)
class Point:
    """A new best plan: after how many seconds of searching and evaluations, how fast, and by which method."""

    seconds: float
    evaluations: int
    step_seconds: float
    method: str


def one_by_one(function: Callable[[Item], Result], items: Iterable[Item], /) -> list[Result]:
    """Apply a function to every item in this thread."""
    return [function(item) for item in items]


@dataclass(eq=False)
class SearchState:
    """The state of a search.

    Args:
        problem: what is planned.
        host_budget: bytes of pinned host memory, or None for no limit.
        method: a name in `METHODS`.
        seed: for random choices.
        each, recompute_limit: as in `SearchContext`.

    Attributes:
        bound: lower bound on the step time of any plan that the method may find, in seconds.
        swap_bound: lower bound on the step time of plans that run each op once.
        baselines: seconds by baseline, None where it has no plan within the budgets.
        best: the fastest plan so far; it has passed the validator.
        best_swap: the fastest of those that run each op once.
        history: every new best.
        evaluations: how many plans were timed.
        stage: index of the running method; `len(methods)` when all are done.
        doing, share: what is being tried, and how much of it is done, from 0 to 1.
        seconds: time spent searching.
        least_host: bytes of the smallest host slab of all plans that do not depend on the seed, also of those beyond
            the host budget.
    """

    problem: Problem
    host_budget: int | None = None
    method: str = DEFAULT
    seed: int = 0
    each: Each = one_by_one
    recompute_limit: float = inf
    bound: float = field(init=False)
    swap_bound: float = field(init=False)
    baselines: dict[str, float | None] = field(default_factory=dict)
    best: SwapPlan | None = None
    best_swap: SwapPlan | None = None
    history: list[Point] = field(default_factory=list)
    evaluations: int = 0
    stage: int = 0
    doing: str = "trying simple policies"
    share: float = 0.0
    seconds: float = 0.0
    least_host: int = 2**62

    def __post_init__(self) -> None:
        check_choice(self.method, self.seed)
        self.swap_bound = bound_of(self.problem)
        recomputes = self.method in RECOMPUTING
        self.bound = recomputing_bound_of(self.problem) if recomputes else self.swap_bound
        self.methods: list[Factory] = list(METHODS[self.method])
        self.current_method: Method | None = None
        self.pending: SearchStep | None = None

    @property
    def done(self) -> bool:
        """Whether nothing is left to try."""
        if len(self.baselines) < len(BASELINES) or self.pending is not None:
            return False
        return self._met(self.bound) or self.stage >= len(self.methods)

    def _met(self, bound: float) -> bool:
        """Whether no plan that a bound holds for is faster than the best."""
        best = self.best
        met = best is not None and best.predicted.seconds <= bound * CLOSE
        if best is not None and self.problem.may_run_beside.any():  # what they wait for, the bound does not know
            met = met or not (best.swap_outs or best.swap_ins)
        return met

    def share_done(self, time_limit: float | None) -> float:
        """The share done of the methods, or of the time if that is more, from 0 to 1."""
        of_methods = (self.stage + self.share) / max(1, len(self.methods))
        return min(1.0, max(of_methods, self.seconds / time_limit if time_limit else 0.0))

    def step(self) -> None:
        """Evaluate the next baseline, or run one search step of the current method.

        Raises:
            Cancelled: cancellation was requested; the next call repeats this step.
        """
        if len(self.baselines) < len(BASELINES):
            name = list(BASELINES)[len(self.baselines)]
            plan = BASELINES[name](self.problem)
            self.baselines[name] = self._offer(plan, int(plan is not None))
            return
        if self.pending is None:
            if self.current_method is None and not (self.stage_swaps_only and self._met(self.swap_bound)):
                self.current_method = self.make_method()
            self.pending = None if self.current_method is None else self.current_method.search_step()
            if self.pending is None:
                self.current_method, self.stage = None, self.stage + 1
                self.spare_the_host()
                return
        self.settle()

    def settle(self) -> None:
        """Apply the result of the last search step if it is still pending.

        Raises:
            Cancelled: cancellation was requested; the result is still pending.
        """
        if self.pending is not None:
            self._offer(self.pending.plan, self.pending.evaluations)
            self.doing, self.share = self.pending.doing, self.pending.share
            self.pending = None

    def spare_the_host(self) -> None:
        """Add methods that need less host memory once all are done and no plan keeps to the host budget."""
        if self.stage >= len(METHODS[self.method]) == len(self.methods) and self.best is None:
            self.methods += _SPARING

    def make_method(self) -> Method:
        """The method of the current stage, at its start."""
        return self.methods[self.stage](self.context(swaps_only=self.stage_swaps_only))

    @property
    def stage_swaps_only(self) -> bool:
        """Whether the plans of the current stage run each op once, and so come after other plans of that kind alone.

        A search with more methods is then never worse than one with fewer.
        """
        return self.methods[self.stage] not in (Recomputing, Refining, without_copies)

    def context(self, *, swaps_only: bool) -> SearchContext:
        """The search context of a method; its functions look up `each` and plans, which change while it runs.

        Args:
            swaps_only: whether the method runs each op once, and so competes with such plans alone.
        """

        def best() -> SwapPlan | None:
            return self.best_swap if swaps_only else self.best

        def seconds() -> float:
            plan = best()
            return inf if plan is None else plan.predicted.seconds

        return SearchContext(
            self.problem, self.swap_bound if swaps_only else self.bound, self.seed,
            lambda function, items: self.each(function, items),  # noqa: PLW0108
            seconds, best, self.recompute_limit,
        )  # fmt: skip

    def plan(self) -> SwapPlan:
        """The best plan.

        Raises:
            BudgetTooSmallError: there is none within the host budget.
            StowageError: the search was cancelled before it had one.
        """
        if self.best is not None:
            return self.best
        if not self.done:
            raise StowageError(STOPPED)
        raise BudgetTooSmallError(
            f"a host budget of {format_bytes(self.host_budget or 0)} is too small beside "
            f"{format_bytes(self.problem.budget)} on the device; allow at least {self.least_host} bytes "
            f"({format_bytes(self.least_host)}) of host memory, or more on the device"
        )

    def _offer(self, plan: SwapPlan | None, evaluations: int) -> float | None:
        """Keep a plan if it is the best; returns its time if it is within the host budget."""
        swaps_only = plan is not None and len(plan.order) == len(self.problem.graph.ops)
        if plan is not None and (self._better(plan, self.best) or (swaps_only and self._better(plan, self.best_swap))):
            plan = replace(plan, host_budget_bytes=self.host_budget)
            problems = validate(plan, self.problem.graph, stop=self.problem.stop)
            if problems:
                raise AssertionError(f"the {plan.method} plan for {self.problem.graph.name} is wrong: {problems[0]}")
            if swaps_only and self._better(plan, self.best_swap):
                self.best_swap = plan
            if self._better(plan, self.best):
                self.best = plan
                point = Point(self.seconds, self.evaluations + evaluations, plan.predicted.seconds, plan.method)
                self.history.append(point)
        self.evaluations += evaluations
        if plan is None:
            return None
        if self.current_method is None or isinstance(self.current_method, Portfolio):  # these do not depend on the seed
            self.least_host = min(self.least_host, plan.host_bytes)
        return plan.predicted.seconds if self._kept_to(plan) else None

    def _kept_to(self, plan: SwapPlan) -> bool:
        return self.host_budget is None or plan.host_bytes <= self.host_budget

    def _better(self, plan: SwapPlan, than: SwapPlan | None) -> bool:
        faster = than is None or plan.predicted.seconds < than.predicted.seconds
        return faster and self._kept_to(plan)
