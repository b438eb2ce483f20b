"""The driver of a search: the baselines first, then one or more families of methods, a search step at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from types import MappingProxyType

from planner.errors import StowageError, did_you_mean
from planner.finalizers import without_garbage_collection
from planner.plan import SwapPlan, validate
from planner.search import STOPPED
from planner.swap.baselines.registry import BASELINES
from planner.swap.bounds.any_order import bound_of, recomputing_bound_of
from planner.swap.methods.eviction_portfolio import CLOSE, Portfolio
from planner.swap.methods.method import Each, Item, Result, SearchStep
from planner.swap.methods.preference import rank_of
from planner.swap.problem.problem import Problem
from planner.swap.schedule.budget_feasibility import (
    BudgetTooSmallError,
    CopiesNeededError,
    HostBudgetTooSmallError,
)
from planner.swap.search.family import FAMILIES, RECOMPUTING_FAMILIES, Family
from planner.swap.search.turns import next_family
from planner.units import format_bytes

#: The families that each choice of a method shares its time between.
METHODS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "auto": ("swap", "joint", "recompute"),
        **{name: (name,) for name in FAMILIES},
        "joint": ("joint", "swap"),  # which need not run anything again
    }
)
#: The method of a search that is not told another.
DEFAULT = "auto"
#: The methods whose plans may run ops again.
RECOMPUTING = frozenset(name for name, families in METHODS.items() if RECOMPUTING_FAMILIES.intersection(families))

#: The turns in which a plan is looked for that is as fast as a baseline and copies less: passes, then their packing.
_TURNS_TO_COPY_LESS = 2
#: The host memory that counts as that of no plan, in bytes.
_NONE = 2**62


def check_choice(method: str, seed: int) -> None:
    """Check a method and a seed.

    Raises:
        StowageError: the method is unknown, or the seed is negative.
    """
    if not isinstance(method, str) or method not in METHODS:
        raise StowageError(
            f'"{method}" is not a search method; choose one of {", ".join(METHODS)}{did_you_mean(str(method), METHODS)}'
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
        recomputing_bound: lower bound on that of any plan, those included in which ops run again.
        families: those of the method, each with its best plan.
        baselines: seconds by baseline, None where it has no plan within the budgets.
        best: the fastest plan so far, and of those as fast the one that copies least; it has passed the validator.
        history: every new best.
        evaluations: how many plans were timed.
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
    recomputing_bound: float = field(init=False)
    families: tuple[Family, ...] = field(init=False)
    baselines: dict[str, float | None] = field(default_factory=dict)
    best: SwapPlan | None = None
    history: list[Point] = field(default_factory=list)
    evaluations: int = 0
    doing: str = "trying simple policies"
    share: float = 0.0
    seconds: float = 0.0
    least_host: int = _NONE

    def __post_init__(self) -> None:
        check_choice(self.method, self.seed)
        names = METHODS[self.method]
        swapping = bound_of(self.problem)
        self.recomputing_bound = recomputing = recomputing_bound_of(self.problem)
        self.bound = recomputing if self.method in RECOMPUTING else swapping
        self.families = tuple(
            Family(
                name, self.problem, recomputing if name in RECOMPUTING_FAMILIES else swapping, self.seed,
                lambda function, items: self.each(function, items),  # noqa: PLW0108 - `each` changes as it runs
                self.recompute_limit,
            )
            for name in names
        )  # fmt: skip
        self.pending: tuple[Family, SearchStep] | None = None

    @property
    def done(self) -> bool:
        """Whether nothing is left to try."""
        if len(self.baselines) < len(BASELINES) or self.pending is not None:
            return False
        return not self._worth_a_turn()

    def _met(self, bound: float) -> bool:
        """Whether no plan that a bound holds for is faster than the best."""
        best = self.best
        met = best is not None and best.predicted.seconds <= bound * CLOSE
        if best is not None and self.problem.may_run_beside.any():  # what they wait for, the bound does not know
            plain = len(best.order) == len(self.problem.graph.ops)
            met = met or (plain and not (best.swap_outs or best.swap_ins))
        return met

    def _worth_a_turn(self) -> list[Family]:
        """The families that may still find the best plan.

        Where a baseline meets the bound, no plan is faster, but one of the first of a family may copy less.
        """
        if self._met(self.bound):
            best = self.best
            if best is None or best.method not in BASELINES or not (best.swap_ins or best.swap_outs):
                return []
            return [
                family for family in self.families
                if family.copies_late and family.turns < _TURNS_TO_COPY_LESS and not family.done
            ][:1]  # fmt: skip
        return [family for family in self.families if not (family.done or self._met(family.bound))]

    def share_done(self, time_limit: float | None) -> float:
        """The share done of the methods, or of the time if that is more, from 0 to 1."""
        of_methods = sum(family.share_done for family in self.families) / len(self.families)
        return min(1.0, max(of_methods, self.seconds / time_limit if time_limit else 0.0))

    @without_garbage_collection()
    def step(self) -> None:
        """Evaluate the next baseline, or run one search step of a family.

        Raises:
            Cancelled: cancellation was requested; the next call repeats this step.
        """
        if len(self.baselines) < len(BASELINES):
            name = list(BASELINES)[len(self.baselines)]
            plan = BASELINES[name](self.problem)
            self.baselines[name] = self._offer(plan, int(plan is not None), self.families, fixed=True)
            return
        if self.pending is None:
            family = next_family(self._worth_a_turn())
            search_step = family.search_step()
            if search_step is None:
                self.spare_the_host()
                return
            self.pending = family, search_step
        self.settle()

    def settle(self) -> None:
        """Apply the result of the last search step if it is still pending.

        Raises:
            Cancelled: cancellation was requested; the result is still pending.
        """
        if self.pending is not None:
            family, search_step = self.pending
            fixed = isinstance(family.method, Portfolio)  # does not depend on the seed
            self._offer(search_step.plan, search_step.evaluations, (family,), fixed=fixed)
            family.count(search_step)
            self.doing, self.share = search_step.doing, search_step.share
            self.pending = None

    def spare_the_host(self) -> None:
        """Add methods that need less host memory once all are done and no plan keeps to the host budget."""
        if self.best is None and all(family.done for family in self.families):
            for family in [family for family in self.families if family.copies][:1]:
                family.spare_the_host()

    def plan(self) -> SwapPlan:
        """The best plan.

        Raises:
            BudgetTooSmallError: there is none within the budgets.
            HostBudgetTooSmallError: there is one that needs more host memory.
            StowageError: the search was cancelled before it had one.
        """
        if self.best is not None:
            return self.best
        if not self.done:
            raise StowageError(STOPPED)
        if not any(family.copies for family in self.families):
            raise CopiesNeededError(format_bytes(self.problem.budget))
        error = BudgetTooSmallError if self.least_host == _NONE else HostBudgetTooSmallError
        raise error(
            f"a host budget of {format_bytes(self.host_budget or 0)} is too small beside "
            f"{format_bytes(self.problem.budget)} on the device; allow at least {self.least_host} bytes "
            f"({format_bytes(self.least_host, round_up=True)}) of host memory, or more on the device"
        )

    def _offer(
        self, plan: SwapPlan | None, evaluations: int, families: Iterable[Family], *, fixed: bool
    ) -> float | None:
        """Keep a plan if it is the best of a family; returns its time if it is within the host budget.

        Args:
            plan: the plan, or None.
            evaluations: how many plans were timed for it.
            families: those that may take it.
            fixed: whether it does not depend on the seed.
        """
        kept = plan is not None and (self.host_budget is None or plan.host_bytes <= self.host_budget)
        takers = [family for family in families if kept and plan is not None and family.improved_by(plan)]
        if plan is not None and takers:
            plan = replace(plan, host_budget_bytes=self.host_budget)
            problems = validate(plan, self.problem.graph, stop=self.problem.stop)
            if problems:
                raise AssertionError(f"the {plan.method} plan for {self.problem.graph.name} is wrong: {problems[0]}")
            for family in takers:
                family.best = plan
            if self.best is None or rank_of(plan, self.problem.graph) < rank_of(self.best, self.problem.graph):
                self.best = plan
                point = Point(self.seconds, self.evaluations + evaluations, plan.predicted.seconds, plan.method)
                self.history.append(point)
        self.evaluations += evaluations
        if plan is None:
            return None
        if fixed:
            self.least_host = min(self.least_host, plan.host_bytes)
        return plan.predicted.seconds if kept else None
