"""A family of a search: methods that run in turn, each from the best plan of their kind that there is so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType

import numpy as np

from planner.plan import SwapPlan
from planner.swap.methods.annealing import Annealing
from planner.swap.methods.eviction_portfolio import Portfolio
from planner.swap.methods.local_search import LocalSearch
from planner.swap.methods.method import Each, Method, SearchContext, SearchStep
from planner.swap.methods.preference import rank_of
from planner.swap.methods.recomputing import Recomputing, Refining, without_copies
from planner.swap.methods.swapadvisor import Genetic
from planner.swap.problem.problem import Problem

Factory = Callable[[SearchContext], Method]

#: The methods that each family runs in turn, after the baselines.
FAMILIES: Mapping[str, tuple[Factory, ...]] = MappingProxyType(
    {
        "swap": (Portfolio, LocalSearch, Annealing),
        "recompute": (without_copies,),
        "joint": (Recomputing, Refining),
        "calendar": (Portfolio,),
        "swapadvisor": (Genetic,),
        "on-demand": (),
    }
)
#: The families whose plans may run ops again.
RECOMPUTING_FAMILIES = frozenset({"recompute", "joint"})
#: The families whose plans copy nothing.
WITHOUT_COPIES = frozenset({"recompute"})


def _sparing(factor: float) -> Factory:
    """A portfolio that prefers or avoids evicting persistent storages, which take host memory for the whole step."""

    def make(context: SearchContext) -> Method:
        return Portfolio(context, np.where(context.problem.arrays.persistent, factor, 1.0))

    return make


#: Turns for which a family is believed to reach what its first turn made likely.
_BELIEVED = 8
#: Tried in addition if no plan keeps to the host budget.
_SPARING = (_sparing(1 / 64), _sparing(64.0))


@dataclass(eq=False)
class Family:
    """A family at work. What it finds depends on nothing that other families of the same search find.

    Args:
        name: a name in `FAMILIES`.
        problem: what is planned.
        bound: lower bound on the step time of its plans, in seconds.
        seed, each, recompute_limit: as in `SearchContext`.

    Attributes:
        best: the best plan of its kind so far, baselines included.
        stage: index of the running method; `len(methods)` when all are done.
        share: how much of what it is trying is done, from 0 to 1.
        turns: how many search steps it had.
        estimate: the step time that its first search step made likely, in seconds.
    """

    name: str
    problem: Problem
    bound: float
    seed: int
    each: Each
    recompute_limit: float = inf
    best: SwapPlan | None = None
    stage: int = 0
    share: float = 0.0
    turns: int = 0
    estimate: float = inf
    method: Method | None = None
    methods: list[Factory] = field(init=False)

    def __post_init__(self) -> None:
        self.methods = list(FAMILIES[self.name])

    @property
    def done(self) -> bool:
        """Whether nothing is left to try."""
        return self.stage >= len(self.methods)

    @property
    def recomputes(self) -> bool:
        """Whether ops may run again in its plans."""
        return self.name in RECOMPUTING_FAMILIES

    @property
    def copies(self) -> bool:
        """Whether its plans may copy."""
        return self.name not in WITHOUT_COPIES

    @property
    def copies_late(self) -> bool:
        """Whether its first turns make plans that copy nothing before memory runs out."""
        return FAMILIES[self.name][:1] == (Portfolio,)

    @property
    def share_done(self) -> float:
        """The share done of its methods, from 0 to 1."""
        return min(1.0, (self.stage + self.share) / max(1, len(self.methods)))

    @property
    def step_seconds(self) -> float:
        """The time of its best plan; infinite without one."""
        return inf if self.best is None else self.best.predicted.seconds

    @property
    def promises(self) -> float:
        """The step time that counts for its turns: of its best plan, or in its first turns what is likely."""
        return min(self.step_seconds, self.estimate) if self.turns <= _BELIEVED else self.step_seconds

    def improved_by(self, plan: SwapPlan) -> bool:
        """Whether a plan is of its kind and better than all of them so far."""
        if not self.recomputes and len(plan.order) > len(self.problem.graph.ops):
            return False
        if not self.copies and (plan.swap_ins or plan.swap_outs):
            return False
        return self.best is None or rank_of(plan, self.problem.graph) < rank_of(self.best, self.problem.graph)

    def spare_the_host(self) -> None:
        """Add methods that need less host memory, once."""
        if len(self.methods) == len(FAMILIES[self.name]):
            self.methods += _SPARING

    def context(self) -> SearchContext:
        """What its methods receive; plans are looked up when asked for, as they change while a method runs."""
        return SearchContext(
            self.problem, self.bound, self.seed, self.each, lambda: self.step_seconds, lambda: self.best,
            self.recompute_limit,
        )  # fmt: skip

    def make_method(self) -> Method:
        """The method of the current stage, at its start."""
        return self.methods[self.stage](self.context())

    def search_step(self) -> SearchStep | None:
        """Run one search step of the current method; None when that method is done, and the next one is to begin.

        Raises:
            Cancelled: cancellation was requested; the next call repeats this step.
        """
        if self.method is None:
            self.method = self.make_method()
        search_step = self.method.search_step()
        if search_step is None:
            self.method, self.stage, self.share = None, self.stage + 1, 0.0
        return search_step

    def count(self, search_step: SearchStep) -> None:
        """Count a search step, once its plan was taken or refused."""
        if self.turns == 0:
            self.estimate = search_step.estimate
        self.turns, self.share = self.turns + 1, search_step.share
