"""The interface of a search method to the search that runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple, Protocol, TypeVar

from planner.plan import SwapPlan
from planner.swap.problem.problem import Problem

Item = TypeVar("Item")
Result = TypeVar("Result")


class SearchStep(NamedTuple):
    """The result of one search step.

    `evaluations` plans were timed; `plan` is one that may be better than all before, or None. `doing` says in words
    what is being tried and `share` how much of it is done, from 0 to 1. `estimate` is the step time that the plans
    timed may lead to, in seconds, also those that do not fit yet; infinite if nothing is known.
    """

    evaluations: int
    plan: SwapPlan | None
    doing: str
    share: float
    estimate: float = inf


@dataclass(frozen=True, eq=False)
class SearchContext:
    """What every method receives.

    Args:
        problem: what is planned; its `stop` is checked between pieces of work that take well under a second.
        bound: lower bound on the step time of any plan, in seconds; a method that meets it may stop.
        seed: for random choices; the same seed and number of search steps give the same plans.
        each: applies a function to every item, in threads if there are any, and returns results in the order of the
            items. Kernels release the interpreter lock; the function must not share scratch between items.
        best: seconds of the fastest plan so far, whichever method found it.
        plan: that plan.
        recompute_limit: the most seconds that ops may run again.
    """

    problem: Problem
    bound: float
    seed: int
    each: Each
    best: Callable[[], float] = lambda: inf
    plan: Callable[[], SwapPlan | None] = lambda: None
    recompute_limit: float = inf


class Each(Protocol):
    """Applies a function to every item and returns the results in order."""

    def __call__(self, function: Callable[[Item], Result], items: Iterable[Item], /) -> list[Result]:
        """Apply."""
        ...


class Method(Protocol):
    """A search method, made with a `SearchContext`, which alone determines the plans of its search steps."""

    def search_step(self) -> SearchStep | None:
        """Work for a moment, well under a second if possible; None when nothing is left to try.

        Raises:
            Cancelled: cancellation was requested; the next call repeats this step.
        """
        ...

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to continue later, as plain JSON data."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned, on a new object with the same context."""
        ...
